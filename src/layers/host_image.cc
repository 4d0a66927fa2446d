#include "layers/host_image.h"

#include <dirent.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "layers/mask.h"
#include "layers/outside.h"
#include "layers/skeleton.h"
#include "sys/boot.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/mount.h"
#include "sys/remove_tree.h"

namespace cay::layers {
namespace {

using isolation::Mode;

// To be raised whenever a version made by an older program would not do.
constexpr char kFormat[] = "1";
constexpr int64_t kMaxAgeSeconds = int64_t{24} * 60 * 60;
// What versions are called while they are made or removed; a fingerprint never begins like this.
constexpr std::string_view kUnfinished = "new";

// Where a change of the machine shows at once. What is changed elsewhere is seen after a day.
constexpr std::array kWatched = std::to_array<const char*>({
    "etc",
    "etc/alternatives",
    "etc/apt",
    "etc/group",
    "etc/hosts",
    "etc/ld.so.cache",
    "etc/passwd",
    "etc/resolv.conf",
    "etc/ssl/certs",
    "opt",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/local",
    "usr/share",
    "var/lib/dpkg/status",
});

Result<Fd> openFolder(int dir, const std::string& path) {
  return sys::openAt(dir, path.c_str(), O_RDONLY | O_DIRECTORY);
}

Result<Fd> makeFolder(int dir, const std::string& path, mode_t mode) {
  const auto made = sys::makeDirectoryAt(dir, path.c_str(), mode);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  return openFolder(dir, path);
}

// When a version was made: its name is <fingerprint>.<seconds>.
std::optional<int64_t> madeAt(std::string_view version, std::string_view fingerprint) {
  if (!version.starts_with(fingerprint)) return std::nullopt;
  version.remove_prefix(fingerprint.size());
  if (!version.starts_with('.')) return std::nullopt;
  const auto seconds = parseUint(version.substr(1));
  return seconds ? std::optional(static_cast<int64_t>(*seconds)) : std::nullopt;
}

bool isFresh(int64_t made) {
  const int64_t age = wallMs() / 1000 - made;
  return age >= 0 && age < kMaxAgeSeconds;
}

}  // namespace

Result<Fd> HostImage::versionsFolder() const {
  CAY_ASSIGN(const Fd images, openFolder(AT_FDCWD, images_));
  return makeFolder(images.get(), kHostImage, 0700);
}

Result<std::string> HostImage::fingerprintNow() const {
  CAY_ASSIGN(const Fd root, openFolder(AT_FDCWD, root_));
  std::string seen = kFormat;
  seen.append(mode_ == Mode::kFull ? " masked " : " ");
  // After a reboot files may be there whose content never reached the disk.
  if (const auto boot = sys::bootId()) seen.append(*boot);
  for (const char* path : kWatched) {
    const auto stat = sys::statAt(root.get(), path, 0);
    if (!stat) continue;
    for (const int64_t value : {static_cast<int64_t>(stat->st_ino), int64_t{stat->st_mtim.tv_sec},
                                int64_t{stat->st_mtim.tv_nsec}, int64_t{stat->st_ctim.tv_sec},
                                int64_t{stat->st_ctim.tv_nsec}}) {
      seen.append(path).append(" ").append(std::to_string(value));
    }
  }
  return cay::fingerprint(seen);
}

Result<Image> HostImage::current() {
  if (mode_ == Mode::kRestricted) return Image{.name = kHostImage, .version = {}, .overlays = {}};
  if (Image image = last(); !image.version.empty()) return image;
  CAY_TRY(refresh());
  return last();
}

Image HostImage::last() {
  const std::scoped_lock lock(mutex_);
  return last_;
}

Result<> HostImage::refresh() {
  if (mode_ == Mode::kRestricted) return {};
  const std::scoped_lock building(building_);
  CAY_ASSIGN(const std::string fingerprint, fingerprintNow());
  if (const auto made = madeAt(last().version, fingerprint); made && isFresh(*made)) return {};
  CAY_ASSIGN(const Fd versions, versionsFolder());
  CAY_ASSIGN(std::string version, findFresh(versions.get(), fingerprint));
  if (version.empty()) {
    auto prepared = prepare(versions.get(), fingerprint);
    if (!prepared) return std::unexpected(std::move(prepared).error().wrap("the image 'host'"));
    version = *std::move(prepared);
  }
  CAY_ASSIGN(Image image, restore(version));
  const std::scoped_lock lock(mutex_);
  last_ = std::move(image);
  return {};
}

Result<std::string> HostImage::findFresh(int versions, const std::string& fingerprint) const {
  CAY_ASSIGN(const auto entries, sys::readDirectory(versions));
  std::string newest;
  for (const sys::DirEntry& entry : entries) {
    const auto made = madeAt(entry.name, fingerprint);
    if (made && isFresh(*made)) newest = std::max(newest, entry.name);
  }
  return newest;
}

Result<std::string> HostImage::prepare(int versions, const std::string& fingerprint) const {
  const std::string unfinished = newId(kUnfinished);
  auto made = build(versions, unfinished);
  std::string finished = fingerprint + "." + std::to_string(wallMs() / 1000);
  if (made) made = sys::renameAt(versions, unfinished.c_str(), versions, finished.c_str());
  if (made) return finished;
  (void)sys::removeTree(versions, unfinished.c_str());
  return std::unexpected(std::move(made).error());
}

Result<> HostImage::build(int versions, const std::string& name) const {
  CAY_ASSIGN(const Fd root, openFolder(AT_FDCWD, root_));
  CAY_ASSIGN(const auto folders, systemFolders(root.get()));
  CAY_ASSIGN(const Fd version, makeFolder(versions, name, 0700));
  CAY_ASSIGN(const Fd masks, makeFolder(version.get(), "masks", 0700));
  for (const std::string& folder : folders) {
    CAY_ASSIGN(const Fd mask, makeFolder(masks.get(), folder, 0755));
    if (mode_ != Mode::kFull) continue;  // what we may not read, sandboxes may not either
    // As it is seen by the overlay: with what lies under the mount points.
    CAY_ASSIGN(const Fd layer, sys::cloneMount(root.get(), folder.c_str()));
    CAY_ASSIGN(const auto closed, findClosed(layer.get()));
    CAY_TRY(buildMask(layer.get(), closed, mask.get()));
  }
  CAY_ASSIGN(const Fd skeleton, makeFolder(version.get(), "skeleton", 0700));
  return buildSkeleton(root.get(), skeleton.get());
}

Result<Image> HostImage::restore(const std::string& version) const {
  CAY_ASSIGN(const Fd versions, versionsFolder());
  const bool isName = !version.empty() && version.find('/') == std::string::npos &&
                      !version.starts_with('.') && !version.starts_with(kUnfinished);
  const auto folder = isName ? openFolder(versions.get(), version) : fail(Code::kNotFound, "");
  if (!folder) {
    return fail(Code::kNotFound, "the image 'host' has no version " + quoted(version));
  }
  const std::string path = images_ + "/" + kHostImage + "/" + version;
  Image image{.name = kHostImage, .version = version, .overlays = {{"/", {path + "/skeleton"}}}};
  CAY_ASSIGN(const Fd root, openFolder(AT_FDCWD, root_));
  for (const std::string name : kSystemFolders) {
    const auto mask = openFolder(folder->get(), "masks/" + name);
    if (!mask) continue;
    const std::string layerPath = root_ == "/" ? root_ + name : root_ + "/" + name;
    CAY_ASSIGN(const Fd layer, openFolder(root.get(), name));
    CAY_TRY(requireOutside(images_, layer.get(), layerPath));
    isolation::Overlay& overlay = image.overlays.emplace_back("/" + name);
    CAY_ASSIGN(const auto hidden, sys::readDirectory(mask->get()));
    if (!hidden.empty()) overlay.lowers.emplace_back(path).append("/masks/").append(name);
    overlay.lowers.push_back(layerPath);
  }
  return image;
}

void HostImage::removeUnused(const std::set<std::string>& inUse) {
  const std::scoped_lock building(building_);
  const auto versions = versionsFolder();
  if (!versions) return;
  const auto fingerprint = fingerprintNow();
  const auto fresh = fingerprint ? findFresh(versions->get(), *fingerprint) : std::string();
  const auto entries = sys::readDirectory(versions->get());
  if (!fresh || !entries) return;
  const std::string given = last().version;
  for (const sys::DirEntry& entry : *entries) {
    if (entry.name == *fresh || entry.name == given || inUse.contains(entry.name)) continue;
    // Under another name first, so that nobody takes a half-removed one for a whole one.
    const std::string leaving = newId(kUnfinished);
    if (sys::renameAt(versions->get(), entry.name.c_str(), versions->get(), leaving.c_str())) {
      (void)sys::removeTree(versions->get(), leaving.c_str());
    }
  }
}

}  // namespace cay::layers
