#include "files/whole_write.h"

#include <cerrno>

#include "base/text.h"
#include "files/directories.h"
#include "files/entry.h"
#include "files/temp_file.h"
#include "sys/io.h"

namespace cay::files {
namespace {

// Failures to make or rename a file beside the target after which writing the target itself may
// still work.
bool inPlaceMayWork(int err) {
  return err == EACCES || err == EPERM || err == EROFS || err == EBUSY || err == EXDEV ||
         err == ENOENT || err == EOPNOTSUPP;
}

Result<Fd> openInPlace(const Location& at, const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  CAY_ASSIGN(Fd file, named(sys::openAt(at.dir.get(), at.name.c_str(), kFlags), path));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(file.get()));
  CAY_TRY(requireRegular(stat, path));
  return file;
}

class InPlaceUpload : public Upload {
 public:
  InPlaceUpload(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<> write(std::string_view piece) override {
    return named(sys::writeAll(file_.get(), piece), path_);
  }
  Result<> commit() override { return {}; }

 private:
  Fd file_;
  std::string path_;
};

class AtomicUpload : public Upload {
 public:
  AtomicUpload(std::shared_ptr<const Place> place, Location at, TempFile temp, std::string path)
      : place_(std::move(place)),
        at_(std::move(at)),
        temp_(std::move(temp)),
        path_(std::move(path)) {}

  Result<> write(std::string_view piece) override {
    return named(sys::writeAll(temp_.fd(), piece), path_);
  }

  Result<> commit() override {
    CAY_ASSIGN(const auto acting, place_->act());
    auto published = temp_.publish(at_.name);
    if (published) return {};
    if (!inPlaceMayWork(published.error().sys)) return failPath(published.error(), path_);
    CAY_ASSIGN(const Fd file, openInPlace(at_, path_));
    if (::lseek(temp_.fd(), 0, SEEK_SET) == -1) return failPath(sysError("lseek", errno), path_);
    CAY_TRY(named(sys::copyContents(temp_.fd(), file.get()), path_));
    return {};
  }

 private:
  std::shared_ptr<const Place> place_;
  Location at_;  // before temp_, which uses its directory to the end
  TempFile temp_;
  std::string path_;
};

// The temp file with the owner and the mode it shall have in the end.
Result<TempFile> tempFor(const Location& at, const std::optional<sys::Stat>& existing,
                         std::optional<mode_t> mode) {
  CAY_ASSIGN(TempFile temp, TempFile::create(at.dir.get(), existing ? 0600 : 0666));
  if (existing) {
    CAY_ASSIGN(const sys::Stat own, sys::statFd(temp.fd()));
    if (own.st_uid != existing->st_uid || own.st_gid != existing->st_gid) {
      CAY_TRY(sys::chownFd(temp.fd(), existing->st_uid, existing->st_gid));
    }
    if (!mode) mode = existing->st_mode & 01777;
  }
  if (mode) CAY_TRY(sys::chmodFd(temp.fd(), *mode));
  return temp;
}

}  // namespace

Result<std::string> prepareTarget(const Place& place, std::string_view path) {
  CAY_ASSIGN(std::string absolute, place.absolute(path));
  if (path.ends_with('/')) {
    const auto dir = place.open(absolute, O_PATH | O_DIRECTORY);
    return fail(dir ? Code::kConflict : Code::kInvalid,
                (dir ? "is a directory: " : "a file name cannot end in a slash: ") + quoted(path));
  }
  CAY_TRY(makeDirectories(place, parentOf(absolute)));
  return absolute;
}

Result<std::unique_ptr<Upload>> replaceFile(std::shared_ptr<const Place> place,
                                            std::string_view path, std::optional<mode_t> mode) {
  CAY_ASSIGN(const auto acting, place->act());
  CAY_ASSIGN(std::string absolute, prepareTarget(*place, path));
  CAY_ASSIGN(Location at, place->locateTarget(absolute));
  std::optional<sys::Stat> existing;
  if (const auto stat = sys::statAt(at.dir.get(), at.name.c_str())) {
    CAY_TRY(requireRegular(*stat, absolute));
    existing = *stat;
  } else if (stat.error().sys != ENOENT) {
    return failPath(stat.error(), absolute);
  }
  auto temp = tempFor(at, existing, mode);
  if (temp) {
    return std::make_unique<AtomicUpload>(std::move(place), std::move(at), *std::move(temp),
                                          std::move(absolute));
  }
  if (!existing || !inPlaceMayWork(temp.error().sys)) {
    return failPath(std::move(temp).error(), absolute);
  }
  CAY_ASSIGN(Fd file, openInPlace(at, absolute));
  if (mode) CAY_TRY(sys::chmodFd(file.get(), *mode));
  return std::make_unique<InPlaceUpload>(std::move(file), std::move(absolute));
}

}  // namespace cay::files
