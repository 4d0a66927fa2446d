// What the host knows of one exec.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/event.h"
#include "sandbox/exec.h"
#include "sandbox/launch.h"

namespace cay::sandbox {

class Follower;

struct Exec {
  std::string id;
  std::string file;  // its output log, in the folder of execs
  Kind kind = Kind::kExec;
  int32_t pid = 0;  // 0 until it runs
  int64_t startedAtMs = 0;
  std::string cmd;  // JSON text, of processes alone
  std::string tag;
  std::string key;          // Idempotency-Key, if any
  std::string fingerprint;  // of the request that carried it

  bool announced = false;  // the keeper has been told of it
  bool recovered = false;  // found in the state folder, not yet confirmed by a keeper
  bool live = true;        // the keeper still has it; changed by ExecTable alone
  std::optional<StartFailure> failure;
  std::optional<ExitRecord> exit;
  Offsets totals;
  Offsets lostFrom{{kNoLimit, kNoLimit}};
  uint64_t progressCount = 0;  // of messages that told the totals
  net::Event changed;

  std::vector<Follower*> followers;
  Offsets limitSent{{kNoLimit, kNoLimit}};
  int listeners = 0;  // followers that count as somebody listening
};
using ExecPtr = std::shared_ptr<Exec>;

// What a keeper stores with the output, and a restarted host reads back.
std::string metaOf(const Exec& exec);
void readMeta(std::string_view text, Exec& exec);

}  // namespace cay::sandbox
