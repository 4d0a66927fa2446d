#include "files/tar_pack.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/tar_format.h"
#include "base/tar_header.h"
#include "base/text.h"
#include "sys/io.h"

namespace cay::files {
namespace {

constexpr size_t kMaxLevels = 200;  // one descriptor each

}  // namespace

Result<std::unique_ptr<TarPack>> TarPack::open(std::shared_ptr<const Place> place,
                                               std::string_view path) {
  CAY_ASSIGN(const auto acting, place->act());
  CAY_ASSIGN(std::string absolute, place->absolute(path));
  CAY_ASSIGN(const Fd found, place->open(absolute, O_PATH));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(found.get()));
  if (!S_ISDIR(stat.st_mode)) return fail(Code::kConflict, "not a directory: " + quoted(absolute));
  CAY_ASSIGN(Fd dir, place->open(absolute, O_RDONLY | O_DIRECTORY));
  std::unique_ptr<TarPack> pack(new TarPack(std::move(place), std::move(absolute)));
  CAY_TRY(pack->descend(std::move(dir), ""));
  return pack;
}

Result<size_t> TarPack::read(std::span<char> buffer) {
  CAY_ASSIGN(const auto acting, place_->act());
  size_t filled = 0;
  while (filled < buffer.size()) {
    const std::span<char> rest = buffer.subspan(filled);
    if (pendingAt_ < pending_.size()) {
      const size_t take = std::min(rest.size(), pending_.size() - pendingAt_);
      std::copy_n(pending_.begin() + static_cast<ptrdiff_t>(pendingAt_), take, rest.begin());
      pendingAt_ += take;
      filled += take;
    } else if (file_.valid()) {
      CAY_ASSIGN(const size_t got, readFile(rest));
      filled += got;
    } else if (ended_) {
      break;
    } else {
      CAY_TRY(advance());
    }
  }
  return filled;
}

Result<size_t> TarPack::readFile(std::span<char> buffer) {
  const size_t want = std::min<uint64_t>(buffer.size(), fileLeft_);
  CAY_ASSIGN(const size_t got, named(sys::readSome(file_.get(), buffer.first(want)), filePath_));
  if (got == 0 && want > 0) {
    return fail(Code::kInternal,
                "the file became shorter while it was packed: " + quoted(filePath_));
  }
  fileLeft_ -= got;
  if (fileLeft_ == 0) {
    file_.reset();
    pending_.assign(tarPadding(fileSize_), '\0');
    pendingAt_ = 0;
  }
  return got;
}

Result<> TarPack::advance() {
  pending_.clear();
  pendingAt_ = 0;
  if (levels_.empty()) {
    appendTarEnd(pending_);
    ended_ = true;
    return {};
  }
  Level& level = levels_.back();
  if (level.names.empty()) {
    levels_.pop_back();
    return {};
  }
  const std::string name = std::move(level.names.back());
  level.names.pop_back();
  return packEntry(name);
}

Result<> TarPack::packEntry(const std::string& name) {
  const Level& level = levels_.back();
  std::string relative = level.path.empty() ? name : joinPath(level.path, name);
  const std::string full = joinPath(path_, relative);
  const int dir = level.dir.get();
  auto stat = sys::statAt(dir, name.c_str());
  if (!stat && stat.error().sys == ENOENT) return {};
  if (!stat) return failPath(std::move(stat).error(), full);
  if (S_ISLNK(stat->st_mode)) {
    const auto target = sys::readLinkAt(dir, name.c_str());
    if (target) appendTarHeader(pending_, relative, *target, place_->seenInside(*stat));
    return {};
  }
  if (!S_ISDIR(stat->st_mode) && !S_ISREG(stat->st_mode)) return {};
  const int kind = S_ISDIR(stat->st_mode) ? O_DIRECTORY : O_NONBLOCK;
  auto opened = sys::openAt(dir, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NOCTTY | kind);
  if (!opened) {
    const int err = opened.error().sys;
    // Gone, or something else by now.
    if (err == ENOENT || err == ELOOP || err == ENOTDIR || err == ENXIO) return {};
    return failPath(std::move(opened).error(), full);
  }
  CAY_ASSIGN(*stat, sys::statFd(opened->get()));
  if (S_ISDIR(stat->st_mode)) {
    appendTarHeader(pending_, relative + "/", "", place_->seenInside(*stat));
    return descend(*std::move(opened), std::move(relative));
  }
  if (!S_ISREG(stat->st_mode)) return {};
  appendTarHeader(pending_, relative, "", place_->seenInside(*stat));
  fileLeft_ = fileSize_ = static_cast<uint64_t>(stat->st_size);
  if (fileSize_ > 0) {
    file_ = *std::move(opened);
    filePath_ = full;
  }
  return {};
}

Result<> TarPack::descend(Fd dir, std::string relative) {
  if (levels_.size() == kMaxLevels) {
    return fail(Code::kInvalid, "too deep to be packed: " + quoted(joinPath(path_, relative)));
  }
  CAY_ASSIGN(auto entries, named(sys::readDirectory(dir.get()), joinPath(path_, relative)));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (sys::DirEntry& entry : entries) names.push_back(std::move(entry.name));
  std::ranges::sort(names, std::greater<>());
  levels_.push_back({std::move(relative), std::move(dir), std::move(names)});
  return {};
}

}  // namespace cay::files
