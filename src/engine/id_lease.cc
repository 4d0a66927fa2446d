#include "engine/id_lease.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "isolation/plan.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

using isolation::kIdsPerSandbox;

constexpr mode_t kOwnerOnly = 0600;
constexpr char kOwnNumber[] = "ids";  // in the state folder
constexpr uint32_t kSlots = 3072;     // of a lease
constexpr uint32_t kSlotsWithoutHub = 4096;
constexpr uint32_t kJobSlots = kSlots - IdLease::kUnits * IdLease::kUnitSlots;
// The first slots of all are those of hosts that serve a pool without a hub.
constexpr uint32_t kBase = 0x1000'0000 + kSlotsWithoutHub * kIdsPerSandbox;
constexpr uint32_t kEnd = 0x8000'0000;
constexpr uint32_t kSlotsBesides = 32;
constexpr uint32_t kLeases = (kEnd - kBase) / (kSlots * kIdsPerSandbox);
static_assert(kJobSlots >= 1024);

std::optional<uint32_t> numberIn(const std::string& state) {
  const auto text = sys::readFile((state + "/" + kOwnNumber).c_str());
  const auto fields = words(text ? *text : std::string_view());
  const auto number = fields.size() == 1 ? parseUint(fields.front()) : std::nullopt;
  if (!number || *number >= kLeases) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

Result<> noteNumber(const std::string& state, uint32_t number) {
  const std::string file = state + "/" + kOwnNumber;
  const std::string half = file + ".new";
  {
    CAY_ASSIGN(const Fd fd, sys::openAt(AT_FDCWD, half.c_str(),
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kOwnerOnly));
    CAY_TRY(sys::writeAll(fd.get(), std::to_string(number) + "\n"));
  }
  return sys::renameAt(AT_FDCWD, half.c_str(), AT_FDCWD, file.c_str());
}

// Whether anything of a hub that does not run may still have its ids.
bool hasSandboxes(const std::string& state) {
  std::error_code error;
  const std::filesystem::directory_iterator found(state + "/sandboxes/sandboxes", error);
  return !error && found != std::filesystem::directory_iterator();
}

// The file of a block, locked, if nobody else has it.
Result<std::optional<Fd>> takeNumber(const Fd& folder, uint32_t number, const std::string& state) {
  const std::string name = std::to_string(number);
  CAY_ASSIGN(Fd file,
             sys::openAt(folder.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, kOwnerOnly));
  CAY_ASSIGN(const bool locked, sys::tryLockFd(file.get(), sys::Lock::kExclusive));
  if (!locked) return std::nullopt;
  CAY_ASSIGN(const std::string owner, sys::readFileAt(folder.get(), name.c_str()));
  if (!owner.empty() && owner != state && numberIn(owner) == number && hasSandboxes(owner)) {
    return std::nullopt;
  }
  CAY_TRY(sys::truncateFd(file.get(), 0));
  CAY_TRY(sys::pwriteAll(file.get(), state, 0));
  return file;
}

}  // namespace

Result<IdLease> IdLease::take(const std::string& folder, const std::string& state) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  CAY_ASSIGN(const Fd opened, sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(opened.get()));
  if (stat.st_uid != ::geteuid() || (stat.st_mode & 022) != 0) {
    return fail(Code::kInvalid, folder + " can be changed by others");
  }
  std::vector<uint32_t> numbers;
  if (const auto own = numberIn(state)) numbers.push_back(*own);
  for (uint32_t number = 0; number < kLeases; ++number) numbers.push_back(number);
  for (const uint32_t number : numbers) {
    CAY_ASSIGN(std::optional<Fd> file, takeNumber(opened, number, state));
    if (!file) continue;
    CAY_TRY(noteNumber(state, number));
    return IdLease(number, *std::move(file));
  }
  return fail(Code::kExhausted, "all blocks of user ids are taken by other hubs of this machine");
}

sandbox::UserIds IdLease::jobs() const {
  return {.base = kBase + number_ * kSlots * kIdsPerSandbox,
          .step = kIdsPerSandbox,
          .count = kIdsPerSandbox,
          .slots = kJobSlots};
}

sandbox::UserIds IdLease::pool(uint32_t firstUnit, uint32_t units) const {
  sandbox::UserIds ids = jobs();
  ids.base = ids.first(kJobSlots + firstUnit * kUnitSlots);
  ids.slots = units * kUnitSlots;
  return ids;
}

uint32_t IdUnits::unitsFor(uint32_t capacity) {
  // Besides those that are there: some that stand ready, and some that are being removed.
  const uint32_t slots = capacity + capacity / 4 + kSlotsBesides;
  return (slots + IdLease::kUnitSlots - 1) / IdLease::kUnitSlots;
}

std::optional<uint32_t> IdUnits::take(uint32_t units) {
  for (uint32_t first = 0; first + units <= taken_.size(); ++first) {
    if (claim(first, units)) return first;
  }
  return std::nullopt;
}

bool IdUnits::claim(uint32_t first, uint32_t units) {
  if (units > taken_.size() || first > taken_.size() - units) return false;
  const auto from = taken_.begin() + first;
  if (std::find(from, from + units, true) != from + units) return false;
  std::fill(from, from + units, true);
  return true;
}

void IdUnits::release(uint32_t first, uint32_t units) {
  std::fill(taken_.begin() + first, taken_.begin() + first + units, false);
}

}  // namespace cay::engine
