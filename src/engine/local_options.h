// What the local engine is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/flavors.h"
#include "engine/gpu_files.h"
#include "engine/machine.h"
#include "engine/networks.h"
#include "isolation/plan.h"

namespace cay::engine {

struct LocalOptions {
  // The hub's folder: absolute, without a link, ours alone. Of it the engine uses
  //   jobs/       a folder for each job (job_folder.h)
  //   sandboxes/  what stands behind walls (sandbox/pool_folder.h)
  //   images/     pulled images, shared with `cay image`
  //   volumes/    buckets, models, datasets and spaces (volumes.h)
  //   server/     cay-host under the name that clients know
  //   ids         which block of user ids is ours
  //   walls.json  what its pools have found out about the walls (host/known_walls.h)
  // and what the networks keep there.
  std::string state;
  std::string cayHost;  // the program, by its absolute path
  // Brings an image here: a program by its absolute path and its arguments, to which the image's
  // name is added. Empty: no image is ever brought.
  std::vector<std::string> pullCommand;
  Networks::Options networks;  // `state` and `onLost` are filled in
  Flavors flavors;
  std::vector<Gpu> gpus = {};  // of the machine that the flavors are made for
  GpuPlaces gpuPlaces = {};
  isolation::Mode mode = isolation::Mode::kFull;
  uint32_t mostJobs = 1000;             // that run at a time
  std::string leases = "/run/cay/ids";  // one for all hubs of a machine
};

}  // namespace cay::engine
