// What a job is told of itself, and what people are told of a job. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/job.h"
#include "layers/image.h"
#include "sandbox/exec.h"

namespace cay::engine {

// NAME=value of a job's commands. From the weakest on: what the image says, where the home and the
// programs are, the job's own variables, its secrets, and what we have to say. Of a sandbox without
// what is meant for its server (SBX_*). With GPUs, the driver's programs come first and its
// libraries last.
std::vector<std::string> jobEnvironment(const JobSpec& spec, const layers::ImageConfig& image);

struct Outcome {
  Stage stage = Stage::kError;
  std::string message;
};
// What the end of its command means for a job.
Outcome outcomeOf(const JobSpec& spec, const sandbox::ExitRecord& exit);

// "1.5 GiB"
std::string sizeText(uint64_t bytes);
// What it really runs, where it was asked for as `asked`.
std::string imageText(const layers::Image& image, std::string_view asked);

}  // namespace cay::engine
