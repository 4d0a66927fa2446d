#include "isolation/root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "isolation/binds.h"
#include "isolation/devices.h"
#include "isolation/mount_point.h"
#include "isolation/stage.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/namespaces.h"
#include "sys/remove_tree.h"

namespace cay::isolation {
namespace {

constexpr uint64_t kShmBytes = 64ULL << 20;

std::string inNewRoot(const std::string& path) {
  return path == "/" ? kStageRoot : kStageRoot + path;
}

// Also completes what was broken off before it had its owner.
Result<> makeFolder(const std::string& path, uid_t owner) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return failSys("mkdir " + path, errno);
  CAY_ASSIGN(const sys::Stat info, sys::statAt(AT_FDCWD, path.c_str()));
  if (info.st_uid == 0 && ::chown(path.c_str(), owner, owner) != 0) {
    return failSys("chown " + path, errno);
  }
  return {};
}

// The layer with the sandbox's ids: host uid n is firstUid + n for the kernel, and n inside.
Result<std::string> idmapped(const std::string& layer, int number, int userNamespace) {
  std::string at = std::string(kStageIdmapped) + "/" + std::to_string(number);
  CAY_TRY(makeFolder(at, 0));
  CAY_ASSIGN(const Fd mount, sys::cloneMount(AT_FDCWD, layer.c_str()));
  CAY_TRY(sys::setMount(mount, {.readOnly = true, .noDevices = true}, userNamespace));
  CAY_TRY(sys::attachMount(mount, at.c_str()));
  return at;
}

Result<> mountOverlay(const Plan& plan, const std::string& at, const std::string& lowers,
                      const std::string& top) {
  // `volatile`: an fsync inside does not wait for the disk, and above all the end of a sandbox does
  // not write out every file of the machine that shares its disk. The kernel leaves a mark, so that
  // nobody mounts such a top again after a power failure without having thought of it; we have.
  CAY_TRY(sys::removeTree(AT_FDCWD, (top + "/work/work").c_str()));
  std::vector<sys::MountOption> options = {{"lowerdir", lowers},
                                           {"upperdir", top + "/upper"},
                                           {"workdir", top + "/work"},
                                           {"index", "off"},
                                           {"xino", "off"},
                                           {"metacopy", "off"},
                                           {"volatile", ""}};
  if (plan.mode == Mode::kUnprivileged) options.emplace_back("userxattr", "");
  if (lowers.size() <= sys::kMaxOption) {
    return sys::mountAt(inNewRoot(at).c_str(), "overlay", options, {.noDevices = true});
  }
  // With a long list the mount is made by a call that follows links, which the stage has none of.
  const std::string stage = std::string(kStageMounts) + "/overlay";
  CAY_TRY(makeFolder(stage, 0));
  CAY_TRY(sys::mountAt(stage.c_str(), "overlay", options, {.noDevices = true}));
  return sys::moveMount(stage.c_str(), inNewRoot(at).c_str());
}

// Where the writable tops are: in the sandbox's folder, or on a disk of its own, which is empty at
// first. Nothing inside the sandbox sees more of that disk than the tops themselves.
Result<std::string> topsFolder(const RootPlan& root) {
  std::string folder = std::string(kStageState) + "/" + root.plan.id + "/tops";
  if (!root.disk.valid()) return folder;
  CAY_TRY(makeFolder(folder, 0));
  CAY_TRY(sys::mountAt(folder.c_str(), "ext4",
                       {{"source", sys::fdPath(root.disk.get())}, {"discard", ""}},
                       {.noDevices = true}));
  for (size_t i = 0; i < root.plan.root.size(); ++i) {
    const std::string top = folder + "/" + std::to_string(i);
    CAY_TRY(makeFolder(top, 0));
    CAY_TRY(makeFolder(top + "/upper", root.plan.firstUid));
    CAY_TRY(makeFolder(top + "/work", root.plan.firstUid));
  }
  return folder;
}

Result<> mountLayers(const RootPlan& root, int userNamespace) {
  CAY_ASSIGN(const std::string tops, topsFolder(root));
  int number = 0;
  for (size_t i = 0; i < root.plan.root.size(); ++i) {
    std::string lowers;
    for (const std::string& layer : root.placed.lowers[i]) {
      if (number == kMostLayers) {
        return fail(Code::kInvalid,
                    "the image has more than " + std::to_string(kMostLayers) + " layers");
      }
      std::string at = layer;
      if (root.plan.mode == Mode::kFull) {
        CAY_ASSIGN(at, idmapped(layer, number, userNamespace));
      }
      ++number;
      lowers += (lowers.empty() ? "" : ":") + at;
    }
    CAY_TRY(mountOverlay(root.plan, root.plan.root[i].at, lowers, tops + "/" + std::to_string(i)));
  }
  return {};
}

// Not every image has them.
Result<> makeMountPoints(const Plan& plan, const Fd& newRoot) {
  const AsSandboxRoot owner(plan);
  CAY_TRY(mountPointAt(newRoot, "/proc", PointKind::kFolder));
  CAY_TRY(mountPointAt(newRoot, "/dev", PointKind::kFolder));
  return {};
}

// Where on the stage its device nodes are.
Result<std::string> devicesFor(const RootPlan& root) {
  if (root.plan.devices.empty()) return kStageDev;
  CAY_TRY(makeFolder(kStageOwnDev, 0));
  CAY_TRY(makeDevices(root.plan.mode, kStageOwnDev, kStageDev));
  CAY_TRY(addDevices(root.plan, root.placed.devices, kStageOwnDev));
  return kStageOwnDev;
}

Result<> mountDevices(const RootPlan& root) {
  const Plan& plan = root.plan;
  const std::string dev = inNewRoot("/dev");
  CAY_ASSIGN(const std::string nodes, devicesFor(root));
  CAY_ASSIGN(const Fd copy, sys::cloneMount(AT_FDCWD, nodes.c_str(), sys::Submounts::kInclude));
  // Most sandboxes share these nodes: nobody may add to them.
  CAY_TRY(sys::setMount(copy, {.readOnly = true}));
  CAY_TRY(sys::attachMount(copy, dev.c_str()));
  CAY_TRY(sys::mountAt((dev + "/pts").c_str(), "devpts",
                       {{"newinstance", ""}, {"ptmxmode", "666"}, {"mode", "620"}},
                       {.noSuid = true, .noExec = true}));
  uint64_t shm = kShmBytes;
  if (plan.limits.memoryBytes > 0) shm = std::min(shm, plan.limits.memoryBytes / 2);
  return sys::mountAt((dev + "/shm").c_str(), "tmpfs",
                      {{"size", std::to_string(shm)}, {"mode", "1777"}},
                      {.noSuid = true, .noDevices = true});
}

}  // namespace

Result<Fd> enterOwnRoot(const RootPlan& root) {
  CAY_TRY(
      sys::mountAt(kStageProc, "proc", {}, {.noSuid = true, .noDevices = true, .noExec = true}));
  const bool full = root.plan.mode == Mode::kFull;
  CAY_ASSIGN(Fd userNamespace, sys::newUserNamespace(kStageProc, full ? root.plan.firstUid : 0,
                                                     full ? kIdsPerSandbox : 1));
  CAY_TRY(mountLayers(root, userNamespace.get()));
  CAY_ASSIGN(const Fd newRoot, sys::openAt(AT_FDCWD, kStageRoot, O_PATH | O_DIRECTORY));
  CAY_TRY(makeMountPoints(root.plan, newRoot));
  CAY_TRY(sys::moveMount(kStageProc, inNewRoot("/proc").c_str()));
  CAY_TRY(mountDevices(root));
  CAY_TRY(mountBinds(root.plan, root.placed.binds, newRoot, userNamespace.get()));
  CAY_TRY(sys::detachMount(kStageMounts));
  // The new root covers the stage's, which is empty by now. No pivot_root: that looks at every
  // process of the machine.
  if (::chdir(kStageRoot) != 0) return failSys("chdir to the new root", errno);
  CAY_TRY(sys::moveMount(".", "/"));
  if (::chroot(".") != 0 || ::chdir("/") != 0) return failSys("chroot", errno);
  return userNamespace;
}

}  // namespace cay::isolation
