// What is to stand around one sandbox: everything that its keeper must know to raise the walls.
// Written by the host, carried by the nursery, read by the keeper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cay::isolation {

// How much the machine lets us do.
enum class Mode : uint8_t {
  kFull,  // root with CAP_SYS_ADMIN: namespaces, idmapped layers, 65536 ids for each sandbox
  kUnprivileged,  // an ordinary user with user namespaces: the same with one id
  kRestricted,    // no namespaces: a uid of its own, Landlock, seccomp, rlimits
};

enum class Network : uint8_t {
  kHost,   // the host's, without binding TCP ports
  kNone,   // a loopback of its own
  kGiven,  // a namespace that was made before and rides along with the plan; ports are free to bind
};
// Nobody outside has a part in its ports.
constexpr bool isOwn(Network network) {
  return network != Network::kHost;
}

// One overlay of a sandbox's root.
struct Overlay {
  std::string at;                   // where it is mounted inside: "/", "/usr"
  std::vector<std::string> lowers;  // directories of the host, topmost first, without submounts
  bool operator==(const Overlay&) const = default;
};

// A file or folder of the host that is seen inside (binds.h).
struct Bind {
  std::string source;  // absolute, of the host, without any link; mounts below it are not seen
  std::string at;      // absolute, inside; made if it is missing
  bool readOnly = false;
  bool isFile = false;
  bool operator==(const Bind&) const = default;
};

// 0: no limit.
struct Limits {
  uint64_t memoryBytes = 0;
  uint64_t pids = 0;
  uint32_t milliCpus = 0;
  uint64_t diskBytes = 0;
  bool operator==(const Limits&) const = default;
};

inline constexpr uint32_t kIdsPerSandbox = 65536;  // in full mode; 1 in the others

struct Plan {
  std::string id;  // of the sandbox: its folder below sandboxes/ in the state folder
  Mode mode = Mode::kFull;
  Network network = Network::kHost;
  uint32_t slot = 0;  // names its limit groups
  uint32_t firstUid =
      0;  // of the host; what uid 0 inside is (full), what commands are (restricted)
  std::vector<Overlay> root;  // in mount order; empty in restricted mode
  Limits limits;
  std::vector<Bind> binds;  // in mount order, after the root
  // Character devices of the host, by absolute paths without a link; inside, /dev has them by their
  // names (devices.h). All others are dead everywhere.
  std::vector<std::string> devices = {};
  int64_t lifetimeMs = 0;  // after which the keeper ends everything; 0: never
  bool stays = false;      // the keeper does not leave for want of work or of a host
  bool operator==(const Plan&) const = default;
};

}  // namespace cay::isolation
