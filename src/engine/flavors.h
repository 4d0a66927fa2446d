// What can be asked for on this machine, by the names that clients know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/job.h"
#include "engine/machine.h"

namespace cay::engine {

struct Flavor {
  std::string name;
  std::string prettyName;
  Resources resources;
  std::string gpuModel;  // of its GPUs, if it has any
  bool operator==(const Flavor&) const = default;
};

class Flavors {
 public:
  // cpu-basic is two processors and a sixteenth of the memory; cpu-upgrade, cpu-performance and
  // cpu-xl are 2, 4 and 8 times that, as far as the machine goes. GPU names only where the machine
  // has that many of that kind; "gpu", "gpux2", … mean whatever kind it has.
  static Flavors ofMachine(const Machine& machine);

  // The same, changed by a document:
  //   {"memoryFactor": 8, "maxStarting": 4, "flavors": [{"name": "cpu-basic", "prettyName": "…",
  //    "cpus": 2, "memoryMb": 2048, "diskMb": 0, "pids": 512, "gpus": 0}]}
  // A flavor that is there already changes in what is said of it, any other begins as cpu-basic.
  // kInvalid, naming the place, for anything else.
  static Result<Flavors> parse(std::string_view text, const Machine& machine);
  // Of a file; those of the machine if there is none.
  static Result<Flavors> read(const std::string& file, const Machine& machine);

  // kInvalid with the names that there are; for GPUs that are not here it says so.
  [[nodiscard]] Result<Flavor> find(std::string_view name) const;
  [[nodiscard]] const std::vector<Flavor>& all() const { return all_; }

  // How much may be promised: the machine's memory, several times over, since few use all of
  // theirs.
  [[nodiscard]] uint64_t promisedMemory() const;
  [[nodiscard]] uint32_t gpus() const { return gpus_; }
  // How many jobs may be starting at once.
  [[nodiscard]] uint32_t maxStarting() const { return maxStarting_; }

 private:
  Result<> change(const json::Object& given);

  std::vector<Flavor> all_;
  uint64_t memoryBytes_ = 0;
  uint32_t gpus_ = 0;
  std::string gpuModel_;
  double memoryFactor_ = 8;
  uint32_t maxStarting_ = 4;
};

}  // namespace cay::engine
