// The log of a job as clients read it: line by line, in valid UTF-8, with times that rise.
//
// That of a command is what its keeper wrote (sandbox/line_log.h), that of a sandbox what its
// cay-host says. Both begin with a line that tells when the job was started.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine.h"

namespace cay::engine {

// Where lines come from.
class LineSource {
 public:
  virtual ~LineSource() = default;
  // nullopt: there is no more now. Blocks for the time of a read.
  virtual Result<std::optional<LogEvent>> next() = 0;
  // Goes to where so many lines are left, and tells whether there are fewer.
  virtual Result<bool> seekTail(uint64_t lines) = 0;
};

// The lines in the first of these folders that is there; none while there is no such folder.
std::unique_ptr<LineSource> keptLines(std::string folder, std::string elseFolder);
// The log of a cay-host; the file may be missing, and may be cut to nothing at any time.
std::unique_ptr<LineSource> hostLines(std::string file);

// The job as its log knows it.
class LoggedJob {
 public:
  virtual ~LoggedJob() = default;
  [[nodiscard]] virtual int64_t startedAtMs() const = 0;  // 0: not yet
  // Nothing writes any more.
  [[nodiscard]] virtual bool isQuiet() const = 0;
};

net::Task<Result<std::unique_ptr<LogStream>>> openLog(std::unique_ptr<LoggedJob> job,
                                                      std::unique_ptr<LineSource> lines,
                                                      std::optional<uint64_t> tail);

}  // namespace cay::engine
