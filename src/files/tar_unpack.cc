#include "files/tar_unpack.h"

#include <cerrno>

#include "base/text.h"
#include "files/directories.h"
#include "sys/io.h"

namespace cay::files {
namespace {

constexpr int kDirectory = O_PATH | O_DIRECTORY | O_NOFOLLOW;

Result<> clearTheWay(const Location& at, const std::string& name) {
  const auto removed = sys::unlinkAt(at.dir.get(), at.name.c_str());
  if (removed || removed.error().sys == ENOENT) return {};
  return failPath(removed.error(), name);
}

}  // namespace

Result<std::unique_ptr<TarUnpack>> TarUnpack::open(std::shared_ptr<const Place> place,
                                                   std::string_view path) {
  CAY_ASSIGN(const auto acting, place->act());
  CAY_ASSIGN(std::string absolute, place->absolute(path));
  CAY_TRY(makeDirectories(*place, absolute));
  CAY_ASSIGN(Fd top, place->open(absolute, O_PATH | O_DIRECTORY));
  return std::unique_ptr<TarUnpack>(
      new TarUnpack(std::move(place), std::move(top), std::move(absolute)));
}

TarUnpack::~TarUnpack() {
  if (open_) (void)sys::unlinkAt(open_->at.dir.get(), open_->at.name.c_str());
}

Result<> TarUnpack::write(std::string_view bytes) {
  CAY_ASSIGN(const auto acting, place_->act());
  return reader_.feed(bytes);
}

Result<UnpackCounts> TarUnpack::finish() {
  CAY_TRY(reader_.finish());
  return counts_;
}

Result<Fd> TarUnpack::openDirectory(std::string_view relative, Missing missing) {
  CAY_ASSIGN(Fd at, sys::openAt(top_.get(), ".", kDirectory));
  for (std::string_view rest = relative; !rest.empty();) {
    const size_t slash = rest.find('/');
    const std::string part(rest.substr(0, slash));
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    auto below = sys::openAt(at.get(), part.c_str(), kDirectory);
    if (!below && below.error().sys == ENOENT && missing == Missing::kMake) {
      const auto made = sys::makeDirectoryAt(at.get(), part.c_str(), 0777);
      if (!made && made.error().sys != EEXIST) return failPath(made.error(), relative);
      below = sys::openAt(at.get(), part.c_str(), kDirectory);
    }
    if (!below && (below.error().sys == ENOTDIR || below.error().sys == ELOOP)) {
      return fail(Code::kInvalid,
                  "the archive leads through " + quoted(part) +
                      ", which is a link or a file, not a directory: " + quoted(relative));
    }
    if (!below) return failPath(std::move(below).error(), relative);
    at = *std::move(below);
  }
  return at;
}

Result<Location> TarUnpack::locate(std::string_view name, Missing missing) {
  CAY_ASSIGN(const std::string clean, tarRelativePath(name));
  const size_t slash = clean.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : clean.substr(0, slash);
  if (!last_.valid() || parent != lastPath_) {
    CAY_ASSIGN(last_, openDirectory(parent, missing));
    lastPath_ = parent;
  }
  CAY_ASSIGN(Fd dir, sys::openAt(last_.get(), ".", kDirectory));
  return Location{std::move(dir), slash == std::string::npos ? clean : clean.substr(slash + 1)};
}

Result<> TarUnpack::member(const TarMember& member) {
  if (member.type == TarType::kFifo || member.type == TarType::kDevice) {
    ++counts_.skipped;
    return {};
  }
  CAY_ASSIGN(Location at, locate(member.path, Missing::kMake));
  if (at.name.empty()) {  // the folder itself, which is there already
    if (member.type == TarType::kDirectory) return {};
    return fail(Code::kInvalid, "the archive has a member without a name");
  }
  switch (member.type) {
    case TarType::kDirectory:
      return makeDir(member, at);
    case TarType::kSymlink:
      return makeSymlink(member, at);
    case TarType::kHardLink:
      return makeHardLink(member, at);
    default:
      return makeFile(member, std::move(at));
  }
}

Result<> TarUnpack::makeDir(const TarMember& member, const Location& at) {
  const auto made = sys::makeDirectoryAt(at.dir.get(), at.name.c_str(), 0777);
  if (!made && made.error().sys != EEXIST) return failPath(made.error(), member.path);
  const auto dir = sys::openAt(at.dir.get(), at.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!dir && (dir.error().sys == ENOTDIR || dir.error().sys == ELOOP)) {
    return fail(Code::kConflict, "not a directory: " + quoted(joinPath(path_, member.path)));
  }
  if (!dir) return failPath(dir.error(), member.path);
  CAY_TRY(named(sys::chmodFd(dir->get(), (member.mode & 01777) | 0700), member.path));
  ++counts_.dirs;
  return {};
}

Result<> TarUnpack::makeSymlink(const TarMember& member, const Location& at) {
  CAY_TRY(clearTheWay(at, member.path));
  CAY_TRY(
      named(sys::symlinkAt(member.linkPath.c_str(), at.dir.get(), at.name.c_str()), member.path));
  CAY_TRY(named(sys::setMtimeAt(at.dir.get(), at.name.c_str(), member.mtime), member.path));
  ++counts_.symlinks;
  return {};
}

Result<> TarUnpack::makeHardLink(const TarMember& member, const Location& at) {
  CAY_ASSIGN(const Location source, locate(member.linkPath, Missing::kFail));
  const auto stat = sys::statAt(source.dir.get(), source.name.c_str());
  if (!stat || S_ISDIR(stat->st_mode)) {
    return fail(Code::kInvalid, "the archive links " + quoted(member.path) +
                                    " to what is not there: " + quoted(member.linkPath));
  }
  const auto existing = sys::statAt(at.dir.get(), at.name.c_str());
  if (!existing || existing->st_ino != stat->st_ino || existing->st_dev != stat->st_dev) {
    CAY_TRY(clearTheWay(at, member.path));
    CAY_TRY(named(sys::linkAt(source.dir.get(), source.name.c_str(), at.dir.get(), at.name.c_str()),
                  member.path));
  }
  ++counts_.files;
  return {};
}

Result<> TarUnpack::makeFile(const TarMember& member, Location at) {
  CAY_TRY(clearTheWay(at, member.path));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  CAY_ASSIGN(Fd file, named(sys::openAt(at.dir.get(), at.name.c_str(), kFlags, 0600), member.path));
  open_.emplace(std::move(at), std::move(file), member.path, member.mode & 01777, member.mtime);
  return {};
}

Result<> TarUnpack::data(std::string_view piece) {
  if (!open_) return {};
  counts_.bytes += piece.size();
  return named(sys::writeAll(open_->file.get(), piece), open_->name);
}

Result<> TarUnpack::memberEnd() {
  if (!open_) return {};
  CAY_TRY(named(sys::chmodFd(open_->file.get(), open_->mode), open_->name));
  CAY_TRY(named(sys::setMtimeFd(open_->file.get(), open_->mtime), open_->name));
  open_.reset();
  ++counts_.files;
  return {};
}

}  // namespace cay::files
