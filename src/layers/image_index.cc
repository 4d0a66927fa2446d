#include "layers/image_index.h"

#include <cerrno>

#include "base/text.h"
#include "layers/digest.h"
#include "layers/image_name.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::layers {
namespace {

constexpr char kFile[] = "index.json";
constexpr char kNewFile[] = "index.json.new";
constexpr char kLock[] = "lock";
constexpr char kUses[] = "uses";
constexpr size_t kMaxBytes = size_t{256} << 20;

Result<Fd> openFolder(const std::string& path) {
  return sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
}

Result<std::string> fullName(std::string_view name) {
  CAY_ASSIGN(const ImageName parsed, parseImageName(name));
  return parsed.text();
}

std::unexpected<Error> notHere(std::string_view name) {
  return fail(Code::kNotFound, "image " + quoted(name) + " is not here");
}

}  // namespace

Result<> ImageIndex::load() {
  CAY_ASSIGN(const Fd folder, openFolder(folder_));
  const auto file = sys::openAt(folder.get(), kFile, O_RDONLY | O_NOFOLLOW);
  if (!file && file.error().sys == ENOENT) {
    content_ = {};
    stamp_ = {};
    return {};
  }
  if (!file) return std::unexpected(file.error());
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(file->get()));
  const Stamp stamp{.inode = stat.st_ino,
                    .mtimeNs = int64_t{stat.st_mtim.tv_sec} * 1'000'000'000 + stat.st_mtim.tv_nsec,
                    .size = stat.st_size};
  if (stamp == stamp_) return {};
  CAY_ASSIGN(const std::string text, sys::readFile(sys::fdPath(file->get()).c_str(), kMaxBytes));
  auto parsed = parse(text);
  if (!parsed) {
    return std::unexpected(std::move(parsed).error().wrap(folder_ + "/" + kFile));
  }
  content_ = *std::move(parsed);
  stamp_ = stamp;
  return {};
}

template <typename Change>
Result<> ImageIndex::update(const Change& change) {
  const std::scoped_lock guard(mutex_);
  CAY_ASSIGN(const Fd folder, openFolder(folder_));
  CAY_ASSIGN(const Fd lock, sys::openAt(folder.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  CAY_TRY(sys::lockFd(lock.get(), sys::Lock::kExclusive));
  CAY_TRY(load());
  Content changed = content_;
  CAY_TRY(change(changed));
  return save(changed);
}

Result<> ImageIndex::save(const Content& content) const {
  CAY_ASSIGN(const Fd folder, openFolder(folder_));
  CAY_ASSIGN(const Fd file,
             sys::openAt(folder.get(), kNewFile, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  CAY_TRY(sys::writeAll(file.get(), textOf(content)));
  CAY_TRY(sys::syncFd(file.get()));
  CAY_TRY(sys::renameAt(folder.get(), kNewFile, folder.get(), kFile));
  return sys::syncFd(folder.get());
}

Result<ImageIndex::Found> ImageIndex::find(std::string_view name) {
  CAY_ASSIGN(const std::string asked, fullName(name));
  const std::scoped_lock guard(mutex_);
  CAY_TRY(load());
  Found found;
  found.name = asked;
  if (const auto alias = content_.aliases.find(asked); alias != content_.aliases.end()) {
    found.alias = asked;
    found.name = alias->second;
    found.isHost = found.name == kHostImage;
    if (found.isHost) return found;
  }
  const auto named = content_.names.find(found.name);
  if (named == content_.names.end()) {
    if (found.alias.empty()) return notHere(name);
    return fail(Code::kNotFound,
                quoted(name) + " is an alias of " + quoted(found.name) + ", which is not here");
  }
  found.image = content_.images.at(named->second);
  return found;
}

Result<StoredImage> ImageIndex::findDigest(std::string_view digest) {
  const std::scoped_lock guard(mutex_);
  CAY_TRY(load());
  const auto found = content_.images.find(std::string(digest));
  if (found == content_.images.end()) return notHere(digest);
  return found->second;
}

Result<> ImageIndex::put(std::string_view name, const StoredImage& image) {
  if (name == kHostImage) return fail(Code::kInvalid, "'host' is the name of the built-in image");
  if (!isDigest(image.digest)) return fail(Code::kInvalid, "not a digest: " + quoted(image.digest));
  CAY_ASSIGN(const std::string full, fullName(name));
  return update([&](Content& content) -> Result<> {
    content.images[image.digest] = image;
    content.names[full] = image.digest;
    return {};
  });
}

Result<> ImageIndex::remove(std::string_view name) {
  CAY_ASSIGN(const std::string full, fullName(name));
  return update([&](Content& content) -> Result<> {
    // An alias hides an image of the same name, so it goes first.
    if (content.aliases.erase(full) > 0 || content.names.erase(full) > 0) return {};
    return notHere(name);
  });
}

Result<> ImageIndex::setAlias(std::string_view name, std::string_view target) {
  if (name == kHostImage) return fail(Code::kInvalid, "'host' is the name of the built-in image");
  CAY_ASSIGN(const std::string full, fullName(name));
  std::string to = kHostImage;
  if (target != kHostImage) {
    CAY_ASSIGN(to, fullName(target));
  }
  if (to == full) return fail(Code::kInvalid, quoted(name) + " cannot be an alias of itself");
  return update([&](Content& content) -> Result<> {
    if (content.aliases.contains(to)) {
      return fail(Code::kInvalid, quoted(target) + " is an alias itself");
    }
    for (const auto& [alias, of] : content.aliases) {
      if (of == full)
        return fail(Code::kInvalid, quoted(alias) + " is an alias of " + quoted(name));
    }
    content.aliases[full] = to;
    return {};
  });
}

Result<ImageIndex::Listing> ImageIndex::list() {
  const std::scoped_lock guard(mutex_);
  CAY_TRY(load());
  Listing listing;
  for (const auto& [name, digest] : content_.names) {
    listing.images.emplace_back(name, content_.images.at(digest));
  }
  listing.aliases.assign(content_.aliases.begin(), content_.aliases.end());
  return listing;
}

Result<Fd> ImageIndex::useFile(std::string_view digest) const {
  CAY_ASSIGN(const Fd folder, openFolder(folder_));
  const auto made = sys::makeDirectoryAt(folder.get(), kUses, 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  const std::string path = std::string(kUses) + "/" + std::string(digestHex(digest));
  return sys::openAt(folder.get(), path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

Result<Fd> ImageIndex::hold(std::string_view digest) {
  if (!isDigest(digest)) return notHere(digest);
  CAY_ASSIGN(Fd use, useFile(digest));
  CAY_TRY(sys::lockFd(use.get(), sys::Lock::kShared));
  // It may have been dropped before we had the lock, but cannot be any more.
  CAY_TRY(findDigest(digest));
  return use;
}

bool ImageIndex::isHeld(std::string_view digest) const {
  const auto use = useFile(digest);
  return !use || !sys::tryLockFd(use->get(), sys::Lock::kExclusive).value_or(false);
}

Result<std::vector<StoredImage>> ImageIndex::dropUnused(const std::set<std::string>& keep) {
  std::vector<StoredImage> remaining;
  CAY_TRY(update([&](Content& content) -> Result<> {
    std::set<std::string> named;
    for (const auto& [name, digest] : content.names) named.insert(digest);
    std::erase_if(content.images, [&](const auto& image) {
      const std::string& digest = image.first;
      return !named.contains(digest) && !keep.contains(digest) && !isHeld(digest);
    });
    for (const auto& [digest, image] : content.images) remaining.push_back(image);
    return {};
  }));
  return remaining;
}

}  // namespace cay::layers
