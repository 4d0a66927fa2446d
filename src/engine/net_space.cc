#include "engine/net_space.h"

#include <fcntl.h>
#include <sched.h>

#include <thread>

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

Result<> runInNetSpace(const Fd* space, const std::function<void()>& act) {
  Result<> gone;
  std::thread([&] {
    gone = space != nullptr ? sys::enter(*space, CLONE_NEWNET) : sys::unshare(CLONE_NEWNET);
    if (gone) act();
  }).join();
  return gone;
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
