#include "engine/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "isolation/binds.h"
#include "sys/file.h"
#include "sys/uapi_fs.h"

namespace cay::engine {
namespace {

constexpr mode_t kForAll = 0755;
constexpr size_t kLongestName = 120;
constexpr size_t kLongestPath = 2048;

struct TypeNames {
  const char* one;
  const char* folder;
};
constexpr std::array<TypeNames, 4> kTypes = {{{.one = "bucket", .folder = "buckets"},
                                              {.one = "model", .folder = "models"},
                                              {.one = "dataset", .folder = "datasets"},
                                              {.one = "space", .folder = "spaces"}}};

const TypeNames& namesOf(const VolumeRef& volume) {
  return kTypes.at(static_cast<size_t>(volume.type));
}

std::unexpected<Error> bad(std::string_view what, std::string_view text) {
  return fail(Code::kInvalid, std::string(what) + ": " + quoted(text));
}

// A part of a name. '@' is ours: it separates the revision.
bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text != "." && text != ".." &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

// The parts of a path below a volume, which may be empty.
Result<std::vector<std::string>> partsOf(std::string_view path) {
  std::vector<std::string> out;
  if (path.size() > kLongestPath || path.contains('\0')) return bad("no path in a volume", path);
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return bad("a path in a volume may not lead upwards", path);
    out.emplace_back(part);
  }
  return out;
}

std::string relativeOf(const VolumeRef& volume) {
  std::string out = std::string(namesOf(volume).folder) + "/" + volume.source;
  if (!volume.revision.empty() && volume.revision != "main") out += "@" + volume.revision;
  return out;
}

Result<Fd> openPart(const Fd& folder, const std::string& name) {
  return sys::openAt2(folder.get(), name.c_str(), O_PATH, 0,
                      sys::kResolveBeneath | sys::kResolveNoSymlinks);
}

// One folder down, made if it may be.
Result<Fd> enterPart(const Fd& folder, const std::string& name, bool make) {
  auto opened = openPart(folder, name);
  if (opened || !make || opened.error().code != Code::kNotFound) return opened;
  auto made = sys::makeDirectoryAt(folder.get(), name.c_str(), kForAll);
  if (!made && made.error().code != Code::kConflict) {
    return std::unexpected(std::move(made).error());
  }
  return openPart(folder, name);
}

}  // namespace

bool Volumes::isServer(const VolumeRef& volume) {
  return volume.type == VolumeRef::Type::kBucket && volume.source == "huggingface/sbx-server";
}

Result<> Volumes::check(const VolumeRef& volume) {
  const auto parts = split(volume.source, '/');
  if (parts.size() != 2 || !isName(parts[0]) || !isName(parts[1])) {
    return bad("no volume can be called so", volume.source);
  }
  if (!volume.revision.empty() && !isName(volume.revision)) {
    return bad("no revision can be called so", volume.revision);
  }
  CAY_TRY(partsOf(volume.path));
  if (volume.at == "/" || volume.at == "/etc/hosts" || volume.at == "/etc/resolv.conf") {
    return bad("nothing can be mounted at", volume.at);
  }
  return isolation::checkBind({.source = "/any", .at = volume.at});
}

Result<isolation::Bind> Volumes::bindOf(const VolumeRef& volume, const std::string& relative,
                                        bool make) const {
  CAY_ASSIGN(std::vector<std::string> parts, partsOf(relative));
  CAY_ASSIGN(const std::vector<std::string> inner, partsOf(volume.path));
  parts.insert(parts.end(), inner.begin(), inner.end());
  CAY_ASSIGN(Fd at, sys::openAt(AT_FDCWD, folder_.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW));
  std::string path = folder_;
  for (const std::string& part : parts) {
    CAY_ASSIGN(at, enterPart(at, part, make));
    path.append("/").append(part);
  }
  CAY_ASSIGN(const sys::Stat info, sys::statFd(at.get()));
  if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) {
    return bad("neither a folder nor a file", volume.path);
  }
  // By its path: whoever mounts it follows no link either.
  return isolation::Bind{.source = std::move(path),
                         .at = volume.at,
                         .readOnly = volume.readOnly || !make,
                         .isFile = S_ISREG(info.st_mode)};
}

Result<isolation::Bind> Volumes::resolve(const VolumeRef& volume) const {
  CAY_TRY(check(volume));
  if (isServer(volume)) {
    if (server_.empty()) return fail(Code::kNotFound, "there is no server of sandboxes here");
    return isolation::Bind{.source = server_, .at = volume.at, .readOnly = true};
  }
  const bool isBucket = volume.type == VolumeRef::Type::kBucket;
  const std::string relative = relativeOf(volume);
  auto bind = bindOf(volume, relative, isBucket);
  if (!bind && bind.error().code == Code::kNotFound) {
    return fail(Code::kNotFound, std::string(namesOf(volume).one) + " " + quoted(volume.source) +
                                     " is not here: put its files into " + folder_ + "/" +
                                     relative);
  }
  if (!bind) return std::unexpected(std::move(bind).error().wrap(volume.source));
  return bind;
}

}  // namespace cay::engine
