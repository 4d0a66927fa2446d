// A program of the machine that does one thing for us and ends: skopeo, gzip, tar.
//
// It does not outlive us, in whatever way we end. Blocking.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::engine {

struct ToolSpec {
  std::string program;  // a path
  std::vector<std::string> arguments;
  bool keepEnvironment = false;  // else it has none
  int in = -1;                   // -1: /dev/null
  int out = -1;
  int err = -1;
  // As the user nobody, if we are root, with no more memory than it takes, and without writing
  // files: for what reads bytes from anybody.
  bool confined = false;
  uint64_t fileBytes = 0;  // the largest file that it may write; 0: no limit
};

class ToolProcess {
 public:
  static Result<ToolProcess> start(const ToolSpec& spec);
  ToolProcess(ToolProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), name_(std::move(other.name_)) {}
  ToolProcess& operator=(ToolProcess&&) = delete;
  // Kills it if it has not been waited for.
  ~ToolProcess();

  // Until it has ended; kInternal unless it says that all went well.
  Result<> wait();

 private:
  ToolProcess(pid_t pid, std::string name) : pid_(pid), name_(std::move(name)) {}

  pid_t pid_;
  std::string name_;
};

// The first of the folders where programs are that has one of this name; kExhausted if none has,
// with the package that brings it.
Result<std::string> findTool(std::string_view name, std::string_view package);

}  // namespace cay::engine
