// How far a pull is: one line that changes on a terminal, else a line for each step.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/image_pull.h"

namespace cay::cli {

// "12.3 MB"
std::string sizeText(uint64_t bytes);

// What there is to say. Pure.
std::string progressText(const engine::PullProgress& progress);

class ProgressLine {
 public:
  ProgressLine(std::FILE* out, bool isTerminal) : out_(out), isTerminal_(isTerminal) {}
  // Leaves a terminal's line empty.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const engine::PullProgress& progress, int64_t nowMs);

 private:
  std::FILE* const out_;
  const bool isTerminal_;
  bool hasShown_ = false;
  engine::PullProgress last_;
  int64_t lastMs_ = 0;
};

}  // namespace cay::cli
