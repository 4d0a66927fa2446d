// How another program starts a cay-host: with one JSON document in a memory file, so that nothing
// secret is in arguments or environment, and with descriptors that it has inherited.
//
//   cay-host --config-fd 3 --listen-fd 4 --ready-fd 5
//
//   --config-fd N   the document (startupText); read whole and closed
//   --listen-fd N   a socket that listens already, Unix or TCP, instead of --port and --listen
//   --ready-fd N    gets kReadyLine once /health is answered, and is closed then
//
// How it ends:
//
//   0                  told to by a signal, or by itself for a reason that the end note tells
//   kExitSandboxEnded  the attached sandbox is over, and the end note says so
//   2                  the document or a flag is wrong: one line on stderr
//   else               it could not start, or crashed: it may be started again, with the same
//                      document; nothing is lost by that
//
// It writes its log to stderr, one JSON object in each line, and needs no environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "isolation/plan.h"
#include "layers/image.h"
#include "sandbox/output_log.h"
#include "sandbox/user_ids.h"

namespace cay::host {

inline constexpr char kReadyLine[] = "ready\n";
inline constexpr int kExitSandboxEnded = 70;
inline constexpr size_t kMostStartupBytes = 16 << 20;
inline constexpr int64_t kMostCapacity = 20'000;
inline constexpr int64_t kMostReady = 1'000;

// A sandbox whose keeper somebody else has made and gives away (Sandbox::handOver). cay-host may be
// started before that: it waits for keeper.mark. It ends when the keeper does, and ends the keeper
// when it ends in order.
struct AttachedSandbox {
  std::string folder;  // absolute; has or will have keeper.sock, keeper.mark and execs/
  isolation::Mode mode = isolation::Mode::kFull;  // not restricted: it needs its own network
  uint32_t firstUid = 0;  // what uid 0 inside is outside; of no meaning in unprivileged mode
  std::string cwd = "/";  // of commands, and what relative paths of files mean
  std::vector<std::string> env = {};  // whole environment of commands, NAME=value
  sandbox::LogShape logs = {};        // of its keeper, which writes what we read
  bool operator==(const AttachedSandbox&) const = default;
};

// A pool of sandboxes as others want it: in the network and the control groups that cay-host was
// started in.
struct PoolSettings {
  uint32_t capacity = 64;  // sandboxes at a time
  uint32_t mostReady = 16;
  isolation::Mode mode = isolation::Mode::kFull;  // no other is tried
  // What they are made of, instead of an image `host` of our own. Its version is remembered by
  // sandboxes: the same as long as the folders are. The variables of its config are those of every
  // sandbox, but for what tells where the home is.
  std::optional<layers::Image> image = {};
  std::vector<isolation::Bind> binds = {};   // in every sandbox
  std::vector<std::string> devices = {};     // the same: see isolation::Plan
  std::optional<sandbox::UserIds> ids = {};  // its own block, where others share the machine
  // Absolute path of a file where hosts that are started alike tell each other what they have found
  // out about the walls (known_walls.h); empty: each tries them.
  std::string wallsNote = {};
  bool operator==(const PoolSettings&) const = default;
};

// All texts are UTF-8.
struct Startup {
  std::string token;             // must not be empty
  bool compatHostToken = false;  // of a pool: the token opens its sandboxes too
  int64_t idleTimeoutMs = 0;     // 0: never
  int64_t lifetimeMs = 0;        // from this start on; 0: for ever
  // Absolute path of a file that is written, by rename, when it ends by itself; empty: none.
  std::string endNote;
  // One of both.
  std::optional<AttachedSandbox> attached;
  std::optional<PoolSettings> pool;
  std::string stateFolder;  // of a pool, absolute; an attached sandbox has its own folder
  bool operator==(const Startup&) const = default;
};

// A token that can be sent in a header.
bool isHeaderSafe(std::string_view token);

std::string startupText(const Startup& startup);
// kInvalid names the field that is missing, unknown or wrong.
Result<Startup> parseStartup(std::string_view text);

// Why it ended by itself.
enum class End : uint8_t { kIdle, kLifetime, kSandboxEnded };
std::string_view endName(End end);  // "idle", "lifetime", "sandbox ended"

struct EndNote {
  End why = End::kIdle;
  std::string message;  // for people: "idle for 600 s"
  bool operator==(const EndNote&) const = default;
};

std::string endNoteText(const EndNote& note);
Result<EndNote> parseEndNote(std::string_view text);

}  // namespace cay::host
