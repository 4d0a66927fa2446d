#include "host/known_walls.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "files/temp_file.h"
#include "sandbox/pool_record.h"
#include "sys/boot.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::host {
namespace {

constexpr char kTried[] = "tried";
constexpr char kTriedAt[] = "tried_at_ms";
constexpr int64_t kFreshMs = 3'600'000;

// Of this very file: another build has another.
Result<json::Object> thisProgram() {
  CAY_ASSIGN(const sys::Stat stat, sys::statAt(AT_FDCWD, "/proc/self/exe", 0));
  return json::Object{{"device", uint64_t{stat.st_dev}},
                      {"inode", uint64_t{stat.st_ino}},
                      {"changed_s", int64_t{stat.st_ctim.tv_sec}},
                      {"changed_ns", int64_t{stat.st_ctim.tv_nsec}}};
}

bool isFresh(const json::Object& object, int64_t nowMs) {
  const json::Value* at = object.if_contains(kTriedAt);
  return at != nullptr && at->is_int64() && at->get_int64() <= nowMs &&
         nowMs - at->get_int64() < kFreshMs;
}

bool isHeld(const isolation::Wall& wall) {
  return wall.verdict == isolation::Verdict::kHeld;
}

// What does not stand may be down for a passing reason, such as a full disk. Two walls are there
// for those only who ask for them.
bool allStand(const WallTable& found) {
  const auto atMost = found.of(isolation::Network::kNone, {.diskBytes = 1});
  return std::ranges::all_of(atMost, isHeld) &&
         std::ranges::all_of(found.host, [](const isolation::Wall& wall) {
           return isHeld(wall) || wall.name == "network" || wall.name == "disk";
         });
}

}  // namespace

KnownWalls::KnownWalls(std::string file, isolation::Mode mode, const isolation::Facts& facts) {
  const auto boot = sys::bootId();
  auto program = thisProgram();
  if (!boot || !program) return;
  file_ = std::move(file);
  tried_ = {{"boot", *boot},
            {"program", *std::move(program)},
            {"mode", sandbox::modeName(mode)},
            {"memory_group", facts.memoryGroup},
            {"pids_group", facts.pidsGroup},
            {"cpu_group", facts.cpuGroup}};
}

std::optional<WallTable> KnownWalls::recall(int64_t nowMs) const {
  if (file_.empty()) return std::nullopt;
  const auto text = sys::readFileAt(AT_FDCWD, file_.c_str());
  const auto parsed = text ? json::parse(*text) : Result<json::Value>(json::Value());
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const json::Object& object = parsed->get_object();
  const json::Value* tried = object.if_contains(kTried);
  const bool isLikeThis = tried != nullptr && tried->is_object() && tried->get_object() == tried_;
  if (!isLikeThis || !isFresh(object, nowMs)) return std::nullopt;
  auto table = readWallTable(object);
  if (!table) return std::nullopt;
  return *std::move(table);
}

Result<> KnownWalls::remember(const WallTable& found, int64_t nowMs) const {
  if (file_.empty() || !allStand(found)) return {};
  json::Object object = wallTableObject(found);
  object[kTried] = tried_;
  object[kTriedAt] = nowMs;
  const size_t slash = file_.rfind('/');
  CAY_ASSIGN(const Fd folder,
             sys::openAt(AT_FDCWD, file_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY));
  CAY_ASSIGN(files::TempFile file, files::TempFile::create(folder.get(), 0600));
  CAY_TRY(sys::writeAll(file.fd(), json::serialize(object) + "\n"));
  return file.publish(file_.substr(slash + 1));
}

}  // namespace cay::host
