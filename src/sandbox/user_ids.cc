#include "sandbox/user_ids.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "sys/io.h"

namespace cay::sandbox {
namespace {

using isolation::Mode;

constexpr uint32_t kManySlots = 40'000;
// With 65536 ids each: above what distributions give to users and containers, below 2^31, which
// some programs take for a negative number.
constexpr uint32_t kFullBase = 0x1000'0000;
constexpr uint32_t kFullEnd = 0x8000'0000;
// With one id each: a block of its own for each host, below the others.
constexpr uint32_t kBlocksBase = 0x0800'0000;
constexpr uint32_t kBlocks = (kFullBase - kBlocksBase) / kManySlots;
// In a container that itself has no more than 65536 ids.
constexpr uint32_t kFewBase = 20'000;

// True if ids up to 2^31 mean something here.
bool hasManyIds() {
  const auto map = sys::readFile("/proc/self/uid_map");
  return map && map->contains("4294967295");
}

uint64_t numberOf(std::string_view stateName) {
  constexpr size_t kDigits = 16;
  uint64_t number = 0;
  const std::string_view digits =
      stateName.substr(stateName.size() - std::min(kDigits, stateName.size()));
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

}  // namespace

UserIds UserIds::choose(Mode mode, std::string_view stateName) {
  if (mode == Mode::kUnprivileged || ::geteuid() != 0) {
    return {.base = ::geteuid(), .step = 0, .count = 1, .slots = kManySlots};
  }
  if (mode == Mode::kFull) {
    return {.base = kFullBase,
            .step = isolation::kIdsPerSandbox,
            .count = isolation::kIdsPerSandbox,
            .slots = (kFullEnd - kFullBase) / isolation::kIdsPerSandbox};
  }
  const auto block = static_cast<uint32_t>(numberOf(stateName) % kBlocks);
  return {.base = hasManyIds() ? kBlocksBase + block * kManySlots : kFewBase,
          .step = 1,
          .count = 1,
          .slots = kManySlots};
}

}  // namespace cay::sandbox
