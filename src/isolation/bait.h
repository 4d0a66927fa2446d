// What the host lays out for the probe: things of its own that must be out of a sandbox's reach.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

// Where the things are, and what the probed sandbox was given: this travels to the probe in the
// arguments of its command.
struct Bait {
  std::string file;    // readable for everybody
  std::string socket;  // an abstract name that is listened at
  uint16_t port = 0;   // of a TCP listener on loopback
  int sharedMemory = -1;
  pid_t process = 0;  // the host's own
  uint64_t processStart = 0;
  std::string hostName;
  uid_t uid = 0;    // the host's own
  std::string ids;  // the host's own map, see idMap
  Network network = Network::kHost;
  uint64_t pids = 0;
  uint64_t memoryBytes = 0;

  [[nodiscard]] std::vector<std::string> toArguments() const;
  static Bait fromArguments(std::span<char* const> arguments);
  bool operator==(const Bait&) const = default;
};

// The owner of the things; they are gone with it.
class LaidBait {
 public:
  // `folder`: a folder of the host that everybody may pass through, for the file. `plan`: of the
  // sandbox that will be probed.
  static Result<LaidBait> lay(const std::string& folder, const Plan& plan);
  LaidBait(LaidBait&& other) noexcept;
  LaidBait& operator=(LaidBait&&) = delete;
  ~LaidBait();

  [[nodiscard]] const Bait& bait() const { return bait_; }

 private:
  LaidBait() = default;

  Bait bait_;
  Fd socket_;
  Fd port_;
};

// "0 0 4294967295": which ids the user namespace of the calling process has, and which ones they
// are outside.
std::string idMap();

// The address of an abstract socket.
struct AbstractAddress {
  explicit AbstractAddress(const std::string& name);
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t length = 0;
};

}  // namespace cay::isolation
