// Place: where a sandbox's files are, and the only way in which the files room walks a path.
//
// Links are followed inside the root as chroot would, and never lead out of it: every walk is one
// openat2 with RESOLVE_IN_ROOT from the root descriptor. Where the kernel or a seccomp filter does
// not have openat2, the root must be the process's own root, for which plain openat means the same;
// any other root is refused. Paths::kBeneath walks with RESOLVE_BENEATH.
//
// Blocking. Immutable after create(), so every thread may use it; work on a thread of its own keeps
// it alive by the shared pointer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "sys/file.h"
#include "sys/fs_identity.h"

namespace cay::files {

// A directory and a name in it, for calls that act on the entry itself. The name has no '/' and is
// neither
// "." nor "..".
struct Location {
  Fd dir;
  std::string name;
};

// What the paths of requests, and those in answers, mean.
enum class Paths {
  kRoot,     // absolute inside the root, or relative to the home
  kHome,     // the home is "/", and ".." does not lead above it; links may lead out of it
  kBeneath,  // the root is the home; only links that stay beneath it are followed
};

// Whose ids a sandbox has: those from here on are 0 and up inside.
struct OwnIds {
  uid_t uid = 0;
  gid_t gid = 0;
  uint32_t count = 0;
};

class Place {
 public:
  // `home` is an absolute path inside the root; "/" with kBeneath. With an identity, files are
  // created and opened as that user (sys::ActingAs); without one, as the process itself.
  static Result<std::shared_ptr<const Place>> create(
      Fd root, const std::string& home, std::optional<sys::Identity> identity = std::nullopt,
      Paths paths = Paths::kRoot, std::optional<OwnIds> ids = std::nullopt);

  // With the ids that the file's owner has inside; those that are not the sandbox's are nobody's.
  [[nodiscard]] sys::Stat seenInside(sys::Stat stat) const;

  // Must be held by the calling thread while it uses the functions below.
  [[nodiscard]] Result<sys::ActingAs> act() const { return sys::ActingAs::begin(identity_); }

  // The path of a request as absolute bytes without "//", "." or a slash at the end. With
  // Paths::kRoot ".." stays, since what it means depends on links; else it takes the last name away
  // as text. A path in the form of path_text.h stands for the bytes it
  // shows if those exist and it does not, or the same is true of their parents.
  [[nodiscard]] Result<std::string> absolute(std::string_view requested) const;

  // Errors name the path. `flags` as for open(2); links are followed, at the end unless O_NOFOLLOW.
  [[nodiscard]] Result<Fd> open(const std::string& absolute, int flags, mode_t mode = 0) const;
  // The same where no part of the path, nor of the way to the home, may be a link.
  [[nodiscard]] Result<Fd> openWithoutLinks(const std::string& absolute, int flags) const;
  // The directory that holds the last component, and its name. kInvalid for "/" and for "..".
  [[nodiscard]] Result<Location> locate(const std::string& absolute) const;
  // The same for the file that `absolute` leads to in the end, which need not exist.
  [[nodiscard]] Result<Location> locateTarget(const std::string& absolute) const;

  // True if removing or moving the directory would take the root or the home with it.
  [[nodiscard]] Result<bool> holdsHome(const sys::Stat& directory) const;

 private:
  Place(Fd root, std::string home, std::optional<sys::Identity> identity, Paths paths,
        std::optional<OwnIds> ids, bool confined)
      : root_(std::move(root)),
        home_(std::move(home)),
        identity_(identity),
        paths_(paths),
        ids_(ids),
        confined_(confined) {}
  // From a path as requests have it to one inside the root, and from there to the file.
  [[nodiscard]] std::string inside(const std::string& absolute) const;
  [[nodiscard]] Result<Fd> walkInside(const std::string& inside, int flags, mode_t mode,
                                      uint64_t resolve = 0) const;
  [[nodiscard]] Result<Fd> walk(const std::string& absolute, int flags, mode_t mode) const;
  [[nodiscard]] Result<Location> locateInside(const std::string& inside,
                                              const std::string& shown) const;
  // How much of a path is there: 2 all, 1 its parent, 0 less.
  [[nodiscard]] int presence(const std::string& absolute) const;

  const Fd root_;
  const std::string home_;
  const std::optional<sys::Identity> identity_;
  const Paths paths_;
  const std::optional<OwnIds> ids_;
  const bool confined_;  // openat2 works here
};

// "a/b" below "/x" is "/x/a/b"; "/" + "a" is "/a".
std::string joinPath(std::string_view dir, std::string_view name);
// The path without its last component; "/" is its own parent.
std::string parentOf(const std::string& absolute);

// The error of a failed call as users see it: "no such file or directory: '/x'".
Error pathError(Error error, std::string_view path);
inline std::unexpected<Error> failPath(Error error, std::string_view path) {
  return std::unexpected<Error>(pathError(std::move(error), path));
}
template <typename T>
Result<T> named(Result<T> result, std::string_view path) {
  if (!result) return failPath(std::move(result).error(), path);
  return result;
}

}  // namespace cay::files
