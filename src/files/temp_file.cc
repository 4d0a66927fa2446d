#include "files/temp_file.h"

#include <cerrno>
#include <utility>

#include "base/ids.h"
#include "sys/file.h"

namespace cay::files {
namespace {

constexpr std::string_view kPrefix = "cay-upload";

std::string hiddenName() {
  return "." + newId(kPrefix);
}

}  // namespace

Result<TempFile> TempFile::create(int dir, mode_t mode) {
  if (auto unnamed = sys::openAt(dir, ".", O_TMPFILE | O_RDWR, mode)) {
    return TempFile(dir, *std::move(unnamed), "");
  }
  std::string name = hiddenName();
  CAY_ASSIGN(Fd named,
             sys::openAt(dir, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  return TempFile(dir, std::move(named), std::move(name));
}

bool isTempName(std::string_view name) {
  return name.starts_with('.') && isId(kPrefix, name.substr(1));
}

TempFile::TempFile(TempFile&& other) noexcept
    : dir_(other.dir_), fd_(std::move(other.fd_)), name_(std::exchange(other.name_, {})) {}

TempFile::~TempFile() {
  if (!name_.empty()) (void)sys::unlinkAt(dir_, name_.c_str());
}

Result<> TempFile::publish(const std::string& name) {
  const auto linked = link(name);
  if (linked) {
    if (!name_.empty()) (void)sys::unlinkAt(dir_, name_.c_str());
    name_.clear();
    return {};
  }
  // A link cannot replace what is there, a rename can.
  if (name_.empty()) {
    if (linked.error().sys != EEXIST) return linked;
    std::string hidden = hiddenName();
    CAY_TRY(link(hidden));
    name_ = std::move(hidden);
  }
  CAY_TRY(sys::renameAt(dir_, name_.c_str(), dir_, name.c_str()));
  name_.clear();
  return {};
}

Result<> TempFile::link(const std::string& name) {
  // By descriptor needs a capability, by /proc needs /proc.
  const auto direct = sys::linkAt(fd_.get(), "", dir_, name.c_str(), AT_EMPTY_PATH);
  if (direct || (direct.error().sys != ENOENT && direct.error().sys != EPERM)) return direct;
  return sys::linkAt(AT_FDCWD, sys::fdPath(fd_.get()).c_str(), dir_, name.c_str(),
                     AT_SYMLINK_FOLLOW);
}

}  // namespace cay::files
