// What is to be known of a pooled sandbox after a restart: record.json in its folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "isolation/plan.h"

namespace cay::sandbox {

inline constexpr char kPoolIdPrefix[] = "s";  // of newId()
inline constexpr size_t kTokenBytes = 32;     // of randomness
inline constexpr size_t kMostIdBytes = 50;    // of one that somebody else has chosen

// Lower-case letters and digits, as somebody else may choose them; never one of newId().
bool isGivenId(std::string_view id);

// How the file routes read paths.
enum class PathRule : uint8_t {
  kHome,  // rooted at the home
  kRoot,  // the sandbox's own absolute paths
};

// What a sandbox was asked to be. Shared by those that were made with one request.
struct PoolSpec {
  std::vector<std::string> env;  // NAME=value, on top of what every sandbox has
  int64_t idleTimeoutMs = 0;     // 0: never
  int64_t ttlMs = 0;             // 0: for ever
  isolation::Limits limits;
  isolation::Network network = isolation::Network::kHost;
  std::string image;  // as named by the client
  PathRule paths = PathRule::kHome;
  std::vector<std::pair<std::string, std::string>> labels;
  std::vector<isolation::Bind> binds;
  std::vector<std::string> devices;  // see isolation::Plan
  int64_t lifetimeMs = 0;            // from its creation; the keeper sees to it; 0: for ever
  bool stays = false;                // its keeper does, with or without work
  bool operator==(const PoolSpec&) const = default;
};

struct PoolRecord {
  std::string id;
  std::string token;
  isolation::Mode mode = isolation::Mode::kFull;
  uint32_t slot = 0;
  int64_t createdAtMs = 0;
  std::string imageVersion;
  std::shared_ptr<const PoolSpec> spec;

  // Of the request that made it and `index` others before it, if it had an Idempotency-Key.
  std::string key;
  std::string fingerprint;
  uint32_t index = 0;
  uint32_t rejected = 0;  // how many more that request had asked for
};

std::string recordText(const PoolRecord& record);
Result<PoolRecord> parseRecord(std::string_view text);

std::string_view networkName(isolation::Network network);
std::string_view pathRuleName(PathRule rule);
std::string_view modeName(isolation::Mode mode);

}  // namespace cay::sandbox
