#include "layers/layer_unpack.h"

#include <algorithm>
#include <cerrno>
#include <ranges>

#include "base/text.h"
#include "layers/whiteout.h"
#include "sys/io.h"
#include "sys/uapi_fs.h"

namespace cay::layers {
namespace {

constexpr int kFolder = O_PATH | O_DIRECTORY | O_NOFOLLOW;
constexpr ptrdiff_t kMaxDepth = 255;  // each level costs a call for each member
constexpr size_t kMaxFolderBytes = size_t{256} << 20;
constexpr mode_t kImpliedMode = 0755;

// How image archives say what is gone: the name with a prefix, or the whole folder's content. Other
// names with the prefix twice are notes of an old file system to itself.
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kWhiteoutNote = ".wh..wh.";
constexpr std::string_view kWhiteoutAll = ".wh..wh..opq";

std::unexpected<Error> bad(std::string what) {
  return fail(Code::kInvalid, "bad layer: " + std::move(what));
}

template <typename T>
Result<T> named(Result<T> result, std::string_view path) {
  if (result) return result;
  return std::unexpected(std::move(result).error().wrap(quoted(path)));
}

std::string parentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

std::string nameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
}

// Version 2: what the file's program may do for the root of the namespace that it is run in.
// Version 3 names another root by its id, which is of the machine that the archive was made on.
bool isPlainCapability(std::string_view value) {
  return value.size() == 20 && value.substr(1, 3) == std::string_view("\0\0\x02", 3);
}

// Not what overlayfs, or the kernel's other parts, would take as an order.
bool isHarmless(std::string_view name, std::string_view value, Owners owners) {
  if (name.contains('\0')) return false;
  if (name.starts_with("user.")) return name.size() > 5 && !name.starts_with("user.overlay.");
  return owners == Owners::kKept && name == "security.capability" && isPlainCapability(value);
}

}  // namespace

LayerUnpack::LayerUnpack(Fd folder, Owners owners, const UnpackLimits& limits)
    : top_(std::move(folder)), owners_(owners), limits_(limits) {
  folders_[""] = {.mode = kImpliedMode};
}

Result<> LayerUnpack::write(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > limits_.bytes) {
    return bad("it is larger than " + std::to_string(limits_.bytes) + " bytes");
  }
  return reader_.feed(bytes);
}

Result<> LayerUnpack::finish() {
  CAY_TRY(reader_.finish());
  // From the deepest up: an ordinary user could not enter a folder that has its final mode.
  for (const auto& [path, attributes] : std::views::reverse(folders_)) {
    CAY_ASSIGN(const Fd folder, named(sys::openAt2(top_.get(), path.empty() ? "." : path.c_str(),
                                                   O_RDONLY | O_DIRECTORY, 0,
                                                   sys::kResolveBeneath | sys::kResolveNoSymlinks),
                                      path));
    CAY_TRY(named(give(folder.get(), attributes, {}), path));
  }
  return {};
}

Result<> LayerUnpack::countEntry() {
  if (++entries_ <= limits_.entries) return {};
  return bad("it has more than " + std::to_string(limits_.entries) + " entries");
}

Result<> LayerUnpack::member(const TarMember& member) {
  CAY_TRY(countEntry());
  if (member.size > limits_.bytes) {
    return bad(quoted(member.path) + " makes it larger than " + std::to_string(limits_.bytes) +
               " bytes");
  }
  CAY_ASSIGN(std::string path, tarRelativePath(member.path));
  if (path.empty()) {
    if (member.type != TarType::kDirectory) return bad("a member has no name");
    CAY_ASSIGN(const Attributes attributes, attributesOf(member));
    return remember(path, attributes);
  }
  const std::string parent = parentOf(path);
  std::string name = nameOf(path);
  CAY_ASSIGN(const int dir, open(parent, Missing::kMake));
  return makeMember(member, {.dir = dir, .path = std::move(path), .name = std::move(name)});
}

Result<> LayerUnpack::makeMember(const TarMember& member, const Spot& at) {
  if (at.name.starts_with(kWhiteout)) return named(hide(at), at.path);
  switch (member.type) {
    case TarType::kDirectory:
      return named(makeFolder(member, at), at.path);
    case TarType::kSymlink:
      return named(makeSymlink(member, at), at.path);
    case TarType::kHardLink:
      return named(makeHardLink(member, at), at.path);
    case TarType::kFifo:
      return named(makeFifo(member, at), at.path);
    case TarType::kDevice:
      CAY_TRY(named(clearTheWay(at), at.path));
      return named(makeWhiteout(at.dir, at.name.c_str()), at.path);
    case TarType::kFile:
      return named(makeFile(member, at), at.path);
  }
  return {};
}

Result<int> LayerUnpack::open(const std::string& path, Missing missing) {
  if (!last_.valid() || path != lastPath_) {
    CAY_ASSIGN(last_, makePath(path, missing));
    lastPath_ = path;
  }
  return last_.get();
}

Result<Fd> LayerUnpack::makePath(const std::string& path, Missing missing) {
  if (std::ranges::count(path, '/') >= kMaxDepth) return bad(quoted(path) + " is too deep");
  auto found = sys::openAt2(top_.get(), path.empty() ? "." : path.c_str(), kFolder, 0,
                            sys::kResolveBeneath | sys::kResolveNoSymlinks);
  if (found) return found;
  CAY_ASSIGN(Fd at, sys::openAt(top_.get(), ".", kFolder));
  std::string walked;
  for (const std::string_view part : split(path, '/')) {
    const std::string name(part);
    walked.append(walked.empty() ? "" : "/").append(name);
    if (name.starts_with(kWhiteout)) return bad(quoted(walked) + " is a whiteout, not a folder");
    auto below = sys::openAt(at.get(), name.c_str(), kFolder);
    if (!below && missing == Missing::kMake) {
      const auto stat = sys::statAt(at.get(), name.c_str());
      if (stat ? isWhiteout(*stat) : stat.error().sys == ENOENT) {
        CAY_TRY(countEntry());
        CAY_TRY(named(makeEmptyFolder(at.get(), name), walked));
        CAY_TRY(remember(walked, {.mode = kImpliedMode}));
        below = sys::openAt(at.get(), name.c_str(), kFolder);
      }
    }
    if (!below && below.error().sys == ENOTDIR) {
      return bad(quoted(path) + " leads through " + quoted(walked) + ", which is no folder");
    }
    if (!below && below.error().sys == ENOENT) return bad(quoted(walked) + " is not there");
    if (!below) return named(std::move(below), walked);
    at = *std::move(below);
  }
  return at;
}

Result<> LayerUnpack::makeEmptyFolder(int dir, const std::string& name) {
  const auto stat = sys::statAt(dir, name.c_str());
  if (stat && S_ISDIR(stat->st_mode)) return {};
  if (stat) CAY_TRY(sys::unlinkAt(dir, name.c_str()));
  CAY_TRY(sys::makeDirectoryAt(dir, name.c_str(), 0700));
  // The umask must not close it to ourselves.
  if (::fchmodat(dir, name.c_str(), 0700, 0) != 0) return failSys("chmod", errno);
  // What lies below was hidden, and stays so.
  return stat && isWhiteout(*stat) ? makeOpaque(dir, name.c_str()) : Result<>();
}

Result<> LayerUnpack::makeOpaque(int dir, const char* name) {
  CAY_ASSIGN(const Fd folder, sys::openAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return sys::setXattrFd(folder.get(), owners_ == Owners::kKept ? kOpaque : kUserOpaque, "y");
}

Result<> LayerUnpack::makeFolder(const TarMember& member, const Spot& at) {
  CAY_ASSIGN(const Attributes attributes, attributesOf(member));
  CAY_TRY(makeEmptyFolder(at.dir, at.name));
  if (!member.xattrs.empty()) {
    CAY_ASSIGN(const Fd folder,
               sys::openAt(at.dir, at.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    CAY_TRY(give(folder.get(), {.mode = 0700}, member.xattrs));
  }
  return remember(at.path, attributes);
}

Result<> LayerUnpack::makeFile(const TarMember& member, const Spot& at) {
  CAY_TRY(attributesOf(member));
  CAY_TRY(clearTheWay(at));
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  CAY_ASSIGN(Fd file, sys::openAt(at.dir, at.name.c_str(), kFlags, 0600));
  file_.emplace(std::move(file), member);
  return {};
}

Result<> LayerUnpack::makeFifo(const TarMember& member, const Spot& at) {
  CAY_ASSIGN(const Attributes attributes, attributesOf(member));
  CAY_TRY(clearTheWay(at));
  CAY_TRY(sys::makeNodeAt(at.dir, at.name.c_str(), S_IFIFO | 0600));
  if (::fchmodat(at.dir, at.name.c_str(), 0600, 0) != 0) return failSys("chmod", errno);
  CAY_ASSIGN(const Fd fifo,
             sys::openAt(at.dir, at.name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW));
  return give(fifo.get(), attributes, {});
}

Result<> LayerUnpack::makeSymlink(const TarMember& member, const Spot& at) {
  CAY_ASSIGN(const Attributes attributes, attributesOf(member));
  CAY_TRY(clearTheWay(at));
  CAY_TRY(sys::symlinkAt(member.linkPath.c_str(), at.dir, at.name.c_str()));
  if (owners_ == Owners::kKept) {
    CAY_TRY(sys::chownLinkAt(at.dir, at.name.c_str(), attributes.uid, attributes.gid));
  }
  return sys::setMtimeAt(at.dir, at.name.c_str(), member.mtime);
}

Result<> LayerUnpack::makeHardLink(const TarMember& member, const Spot& at) {
  CAY_ASSIGN(const std::string target, tarRelativePath(member.linkPath));
  CAY_ASSIGN(const Fd dir, makePath(parentOf(target), Missing::kFail));
  const std::string name = nameOf(target);
  const auto stat = sys::statAt(dir.get(), name.c_str());
  if (!stat || S_ISDIR(stat->st_mode) || isWhiteout(*stat)) {
    return bad("a hard link to what is not there: " + quoted(member.linkPath));
  }
  const auto existing = sys::statAt(at.dir, at.name.c_str());
  if (existing && existing->st_ino == stat->st_ino) return {};
  CAY_TRY(clearTheWay(at));
  return sys::linkAt(dir.get(), name.c_str(), at.dir, at.name.c_str());
}

Result<> LayerUnpack::hide(const Spot& at) {
  if (at.name == kWhiteoutAll) {
    // Overlays look for this mark on every folder but their top.
    if (at.path == at.name) return bad("it hides all layers below it");
    return makeOpaque(at.dir, ".");
  }
  if (at.name.starts_with(kWhiteoutNote)) return {};
  const std::string hidden = at.name.substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..") return bad("a whiteout of no name");
  // What the layer brings along itself hides what is below it, but folders are merged.
  const auto stat = sys::statAt(at.dir, hidden.c_str());
  if (stat) return S_ISDIR(stat->st_mode) ? makeOpaque(at.dir, hidden.c_str()) : Result<>();
  return makeWhiteout(at.dir, hidden.c_str());
}

Result<> LayerUnpack::clearTheWay(const Spot& at) {
  const auto stat = sys::statAt(at.dir, at.name.c_str());
  if (!stat) return stat.error().sys == ENOENT ? Result<>() : std::unexpected(stat.error());
  if (!S_ISDIR(stat->st_mode)) return sys::unlinkAt(at.dir, at.name.c_str());
  if (!sys::unlinkAt(at.dir, at.name.c_str(), AT_REMOVEDIR)) return bad("a folder is in its way");
  folders_.erase(at.path);
  return {};
}

Result<> LayerUnpack::remember(const std::string& path, const Attributes& attributes) {
  if (folders_.insert_or_assign(path, attributes).second) folderBytes_ += path.size();
  if (folderBytes_ > kMaxFolderBytes) return bad("it has too many folders");
  return {};
}

Result<LayerUnpack::Attributes> LayerUnpack::attributesOf(const TarMember& member) const {
  // The last number means "unchanged" to the kernel.
  constexpr uint64_t kLastId = UINT32_MAX - 1;
  if (owners_ == Owners::kKept && (member.uid > kLastId || member.gid > kLastId)) {
    return bad("the owner is none: " + quoted(member.path));
  }
  return Attributes{.mode = member.mode,
                    .uid = static_cast<uid_t>(member.uid),
                    .gid = static_cast<gid_t>(member.gid),
                    .mtime = member.mtime};
}

Result<> LayerUnpack::give(int fd, const Attributes& attributes, const Xattrs& xattrs) const {
  // A change of the owner takes setuid bits and capabilities away, and a mode may forbid us to set
  // attributes.
  if (owners_ == Owners::kKept) CAY_TRY(sys::chownFd(fd, attributes.uid, attributes.gid));
  for (const auto& [name, value] : xattrs) {
    if (!isHarmless(name, value, owners_)) continue;
    const auto set = sys::setXattrFd(fd, name.c_str(), value);
    // Some file systems have none.
    if (!set && set.error().sys != EOPNOTSUPP) return set;
  }
  CAY_TRY(sys::chmodFd(fd, attributes.mode));
  return attributes.mtime ? sys::setMtimeFd(fd, *attributes.mtime) : Result<>();
}

Result<> LayerUnpack::data(std::string_view piece) {
  if (!file_) return {};
  return named(sys::writeAll(file_->file.get(), piece), file_->member.path);
}

Result<> LayerUnpack::memberEnd() {
  if (!file_) return {};
  const OpenFile file = *std::exchange(file_, std::nullopt);
  CAY_ASSIGN(const Attributes attributes, attributesOf(file.member));
  return named(give(file.file.get(), attributes, file.member.xattrs), file.member.path);
}

}  // namespace cay::layers
