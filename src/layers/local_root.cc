#include "layers/local_root.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/text.h"
#include "layers/outside.h"
#include "sys/file.h"
#include "sys/uapi_fs.h"

namespace cay::layers {
namespace {

constexpr size_t kShownNames = 20;

bool isName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= NAME_MAX && name != "." && name != ".." &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

std::string namesIn(const std::string& folder) {
  std::vector<std::string> names = {kHostImage};
  const auto dir = sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (const auto entries = dir ? sys::readDirectory(dir->get()) : std::vector<sys::DirEntry>()) {
    for (const sys::DirEntry& entry : *entries) {
      const bool mayBe = entry.type != DT_REG && isName(entry.name);
      if (mayBe && entry.name != kHostImage) names.push_back(entry.name);
    }
  }
  std::ranges::sort(names);
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShownNames); ++i) {
    out.append(i == 0 ? "" : ", ").append(names[i]);
  }
  if (names.size() > kShownNames) out += ", …";
  return out;
}

std::unexpected<Error> noImage(const LocalRoots& roots, std::string_view name,
                               const std::string& why) {
  std::string message = "no image " + quoted(name) + ": " + why;
  message += "; there is " + namesIn(roots.folder);
  return fail(Code::kInvalid, std::move(message));
}

// Where the path really is, since a link may be changed later.
std::string realPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             &std::free);
  return resolved ? resolved.get() : "";
}

bool hasShell(int root) {
  const auto shell = sys::openAt2(root, "bin/sh", O_PATH, 0, sys::kResolveInRoot);
  const auto stat = shell ? sys::statFd(shell->get()) : std::unexpected(shell.error());
  return stat && S_ISREG(stat->st_mode) && (stat->st_mode & 0111) != 0;
}

}  // namespace

Result<Image> localRoot(const LocalRoots& roots, std::string_view name) {
  if (roots.folder.empty()) {
    return noImage(roots, name, "this host offers no local roots (--images)");
  }
  if (!isName(name)) return noImage(roots, name, "not a name");
  const std::string path = realPath(roots.folder + "/" + std::string(name));
  if (path.empty()) return noImage(roots, name, "there is no such root");
  const auto root = sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!root) return noImage(roots, name, errnoText(root.error().sys));
  if (!hasShell(root->get())) return noImage(roots, name, "it has no bin/sh");
  CAY_TRY(requireOutside(roots.state, root->get(), path));
  if (roots.mode == isolation::Mode::kRestricted) {
    return fail(Code::kInvalid, "image " + quoted(name) +
                                    ": in restricted mode sandboxes have no root of their own");
  }
  return Image{.name = std::string(name), .version = {}, .overlays = {{"/", {path}}}};
}

}  // namespace cay::layers
