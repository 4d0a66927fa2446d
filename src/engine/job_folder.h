// What the local engine keeps of one job, so that it finds it again.
//
//   spec.json   what was asked for, with its secrets: for the owner's eyes alone
//   state.json  how far it has come
//   etc/        hosts and resolv.conf, as the job sees them
//   lines/      what it wrote (sandbox/line_log.h), while no sandbox has it
//   host.*      of the cay-host that serves it (front_end.h)
//
// Both documents are replaced as a whole. Blocking, for microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/job.h"
#include "engine/networks.h"

namespace cay::engine {

struct JobState {
  int64_t number = 0;  // jobs are numbered in the order in which they came
  Status status;
  std::optional<NetworkId> network;      // that it has
  std::optional<uint32_t> idBlock = {};  // of a pool: its first unit of user ids
  std::vector<uint32_t> gpus = {};       // that it has, by their minor numbers
  bool operator==(const JobState&) const = default;
};

std::string specText(const JobSpec& spec);
Result<JobSpec> parseSpec(std::string_view text);
std::string stateText(const JobState& state);
Result<JobState> parseState(std::string_view text);

class JobFolder {
 public:
  explicit JobFolder(std::string path) : path_(std::move(path)) {}

  // Makes the folder of a job below `jobs`: afterwards it is there with both documents, or not at
  // all. kConflict if there is one of that name.
  static Result<JobFolder> make(const std::string& jobs, const JobSpec& spec,
                                const JobState& state);
  // Those that are there, after sweeping what was not finished.
  static Result<std::vector<JobFolder>> all(const std::string& jobs);

  [[nodiscard]] Result<JobSpec> spec() const;
  [[nodiscard]] Result<> save(const JobSpec& spec) const;
  [[nodiscard]] Result<JobState> state() const;
  [[nodiscard]] Result<> save(const JobState& state) const;
  // All of it.
  [[nodiscard]] Result<> remove() const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string id() const { return path_.substr(path_.rfind('/') + 1); }
  [[nodiscard]] std::string hosts() const { return path_ + "/etc/hosts"; }
  [[nodiscard]] std::string resolvConf() const { return path_ + "/etc/resolv.conf"; }
  [[nodiscard]] std::string lines() const { return path_ + "/lines"; }
  [[nodiscard]] std::string hostLog() const { return path_ + "/host.log"; }

 private:
  [[nodiscard]] Result<> write(const char* name, std::string_view text) const;

  std::string path_;
};

}  // namespace cay::engine
