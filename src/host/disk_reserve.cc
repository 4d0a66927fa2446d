#include "host/disk_reserve.h"

#include <sys/statvfs.h>

#include <algorithm>

namespace cay::host {
namespace {

constexpr int64_t kLookEveryMs = 250;

}  // namespace

uint64_t DiskReserve::bytesFor(uint64_t totalBytes) {
  const uint64_t least = std::min<uint64_t>(256ULL << 20, totalBytes / 4);
  return std::clamp<uint64_t>(totalBytes / 50, least, 4ULL << 30);
}

Result<> DiskReserve::check(int64_t nowMs) {
  if (lookedAtMs_ == INT64_MIN || nowMs - lookedAtMs_ >= kLookEveryMs) {
    lookedAtMs_ = nowMs;
    struct statvfs disk{};
    low_ = ::fstatvfs(folder_, &disk) == 0 &&
           disk.f_bavail * disk.f_frsize < bytesFor(disk.f_blocks * disk.f_frsize);
  }
  if (!low_) return {};
  return fail(
      Code::kExhausted,
      "the disk is nearly full: what is left is kept free, so that running sandboxes go on");
}

}  // namespace cay::host
