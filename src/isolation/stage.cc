#include "isolation/stage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "isolation/binds.h"
#include "isolation/devices.h"
#include "sys/io.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace cay::isolation {
namespace {

Result<Fd> openNamespace(const char* path) {
  Fd space(::open(path, O_RDONLY | O_CLOEXEC));
  if (!space.valid()) return failSys(path, errno);
  return space;
}

Result<> makeFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return failSys("mkdir " + path, errno);
  return {};
}

// An ordinary user may mount a new /proc only where one can be seen already.
Result<> showProc() {
  CAY_TRY(makeFolder("/s/proc"));
  CAY_ASSIGN(const Fd mount, sys::cloneMount(AT_FDCWD, "/old/proc", sys::Submounts::kInclude));
  return sys::attachMount(mount, "/s/proc");
}

}  // namespace

Result<Stage> Stage::enter(Mode mode, const std::string& sandboxes, const Fd& users) {
  Stage stage;
  if (mode == Mode::kUnprivileged) {
    CAY_TRY(users.valid() ? sys::enter(users, CLONE_NEWUSER) : sys::enterNewUserNamespace(0, 0));
  }
  CAY_TRY(sys::unshare(CLONE_NEWNS));
  CAY_ASSIGN(stage.hostMounts_, openNamespace("/proc/self/ns/mnt"));
  CAY_TRY(sys::unshare(CLONE_NEWNS));
  CAY_TRY(sys::makeMountsPrivate());

  stage.devices_ = Fd(::open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC));
  // Any folder will do to hang the new root on.
  CAY_TRY(sys::mountAt(sandboxes.c_str(), "tmpfs", {{"mode", "755"}, {"size", "1m"}},
                       {.noSuid = true, .noDevices = true}));
  if (::chdir(sandboxes.c_str()) != 0) return failSys("chdir", errno);
  CAY_TRY(makeFolder("old"));
  CAY_TRY(sys::pivotRoot(".", "old"));
  if (::chdir("/") != 0) return failSys("chdir", errno);
  for (const char* folder : {kStageMounts, kStageProc, kStageRoot}) CAY_TRY(makeFolder(folder));
  CAY_TRY(sys::mountAt(kStageMounts, "tmpfs", {{"mode", "755"}, {"size", "1m"}},
                       {.noSuid = true, .noDevices = true}));
  CAY_TRY(makeFolder("/s/layers"));
  CAY_TRY(makeFolder(kStageIdmapped));
  CAY_TRY(makeFolder(kStageDev));
  CAY_TRY(makeDevices(mode, kStageDev, "/old/dev"));
  if (mode == Mode::kUnprivileged) CAY_TRY(showProc());
  CAY_ASSIGN(stage.ownMounts_, openNamespace("/old/proc/self/ns/mnt"));
  CAY_TRY(sys::detachMount("/old"));
  // From the other namespace, since in this one the new root hangs on that folder.
  CAY_TRY(sys::enter(stage.hostMounts_));
  auto copy = sys::cloneMount(AT_FDCWD, sandboxes.c_str());
  CAY_TRY(sys::enter(stage.ownMounts_));
  if (!copy) return std::unexpected(std::move(copy.error()));
  CAY_TRY(makeFolder(kStageState));
  CAY_TRY(sys::attachMount(*copy, kStageState));
  return stage;
}

Result<Fd> Stage::source(const Bind& bind) const {
  CAY_TRY(sys::enter(hostMounts_));
  auto taken = takeSource(bind);
  CAY_TRY(sys::enter(ownMounts_));
  if (!taken) return std::unexpected(std::move(taken).error().wrap("cannot mount at " + bind.at));
  return taken;
}

Result<Fd> Stage::device(const std::string& path) const {
  CAY_TRY(sys::enter(hostMounts_));
  auto taken = takeDevice(path);
  CAY_TRY(sys::enter(ownMounts_));
  if (!taken) return std::unexpected(std::move(taken).error().wrap("cannot show " + path));
  return taken;
}

Result<std::string> Stage::layer(const std::string& path) {
  if (const auto known = layers_.find(path); known != layers_.end()) return known->second;
  CAY_TRY(sys::enter(hostMounts_));
  auto copy = sys::cloneMount(AT_FDCWD, path.c_str());
  CAY_TRY(sys::enter(ownMounts_));
  if (!copy) return std::unexpected(std::move(copy.error()));
  std::string at = "/s/layers/" + std::to_string(layers_.size());
  CAY_TRY(makeFolder(at));
  CAY_TRY(sys::attachMount(*copy, at.c_str()));
  layers_[path] = at;
  return at;
}

}  // namespace cay::isolation
