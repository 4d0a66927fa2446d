#include "engine/net_space.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/namespaces.h"

namespace cay::engine {

Result<Fd> ownNetSpace() {
  return sys::openAt(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY);
}

Result<std::string> netSpaceName(const Fd& space) {
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(space.get()));
  return std::to_string(stat.st_ino);
}

Result<Inside> Inside::enter(const Fd& home, const Fd& space) {
  CAY_TRY(sys::enter(space));
  return Inside(home);
}

Result<Inside> Inside::enterNew(const Fd& home) {
  CAY_TRY(sys::unshare(CLONE_NEWNET));
  return Inside(home);
}

Inside::~Inside() {
  if (home_ == nullptr) return;
  if (const auto back = sys::enter(*home_); !back) {
    log(Level::kError, "cannot go back to the machine's network",
        {{"error", back.error().message}});
    std::abort();
  }
}

Result<> setNetSetting(const std::string& name, std::string_view value) {
  return sys::writeFileAt(AT_FDCWD, ("/proc/sys/net/" + name).c_str(), value);
}

Result<std::string> netSetting(const std::string& name) {
  CAY_ASSIGN(const std::string text, sys::readFile(("/proc/sys/net/" + name).c_str()));
  return text.substr(0, text.find('\n'));
}

Result<> setNetSettingIfThere(const std::string& name, std::string_view value) {
  auto set = setNetSetting(name, value);
  if (!set && set.error().code == Code::kNotFound) return {};
  return set;
}

}  // namespace cay::engine
