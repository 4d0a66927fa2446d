// Device nodes of the host in a sandbox: those that its plan names, and no other.
#include <sched.h>
#include <sys/sysmacros.h>

#include <fstream>

#include "sandbox/nursery_fixture.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace cay::sandbox {
namespace {

// What every sandbox has.
constexpr char kUsual[] =
    "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n";

// Harmless devices under the names of a GPU's. They are on a mount of their own, since a temporary
// folder may be on one where all devices are dead.
class DevicesTest : public NurseryTest {
 protected:
  void SetUp() override {
    NurseryTest::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(nodes());
    ASSERT_TRUE(sys::unshare(CLONE_NEWNS));
    ASSERT_TRUE(sys::makeMountsPrivate());
    ASSERT_TRUE(sys::mountAt(nodes().c_str(), "tmpfs", {{"size", "64k"}, {"mode", "755"}}, {}));
    make("nvidia0", S_IFCHR, makedev(1, 5));
    make("nvidia1", S_IFCHR, makedev(1, 5));
    make("nvidiactl", S_IFCHR, makedev(1, 3));
    startNursery();
  }
  void TearDown() override {
    NurseryTest::TearDown();
    (void)sys::detachMount(nodes().c_str());
  }

  fs::path nodes() { return dir_.path() / "nodes"; }
  void make(const std::string& name, mode_t kind, dev_t number) {
    ASSERT_EQ(::mknod((nodes() / name).c_str(), kind | 0666, number), 0);
    ASSERT_EQ(::chmod((nodes() / name).c_str(), 0666), 0);
  }
  Plan with(const std::vector<std::string>& names) {
    Plan out = plan();
    for (const std::string& name : names) out.devices.push_back(nodes() / name);
    return out;
  }
  Plan at(const std::string& path) {
    Plan out = plan();
    out.devices = {path};
    return out;
  }
};

TEST_F(DevicesTest, TheNamedOnesWorkAndThereAreNoOthers) {
  const Plan sandbox = with({"nvidia0", "nvidiactl"});
  raise(sandbox);
  EXPECT_EQ(run(sandbox,
                "head -c 3 /dev/nvidia0 | od -An -tx1; echo x >/dev/nvidiactl; echo $?;"
                "exec 3<>/dev/nvidia0; echo $?")
                .output,
            " 00 00 00\n0\n0\n");
  EXPECT_EQ(run(sandbox, "ls /dev | grep -v nvidia").output, kUsual);
  EXPECT_EQ(run(sandbox, "ls /dev | grep nvidia").output, "nvidia0\nnvidiactl\n");
  EXPECT_EQ(run(sandbox, "echo x >/dev/null && head -c1 /dev/urandom >/dev/shm/x && ls /dev/pts")
                .exit.exitCode,
            0);
}

TEST_F(DevicesTest, NobodyInsideChangesWhatThereIs) {
  const Plan sandbox = with({"nvidia0", "nvidiactl"});
  raise(sandbox);
  for (const char* attempt :
       {"mknod /dev/nvidia1 c 1 5", "mknod /root/nvidia1 c 1 5", "mknod /dev/shm/nvidia1 c 1 5",
        "mknod /tmp/nvidia1 c 1 5", "touch /dev/new", "rm /dev/nvidia0", "mv /dev/nvidia0 /dev/x",
        "ln /dev/nvidia0 /dev/x", "ln /dev/nvidia0 /root/x", "chmod 777 /dev/nvidia0",
        "chown 1 /dev/nvidia0", "touch /dev/nvidia0", "umount /dev/nvidia0", "umount -l /dev",
        "mount -o remount,rw,bind /dev", "mount --bind /dev/zero /dev/nvidia0",
        "unshare -Urm umount /dev/nvidia0", "cp -a /dev/nvidia0 /root/x && head -c1 /root/x"}) {
    EXPECT_NE(run(sandbox, std::string("(") + attempt + ") 2>&1").exit.exitCode, 0) << attempt;
  }
  const std::string mounts = run(sandbox, "grep ' /dev/nvidia0 ' /proc/self/mountinfo").output;
  EXPECT_TRUE(mounts.contains(" ro,nosuid,noexec")) << mounts;
}

TEST_F(DevicesTest, ASandboxWithoutThemHasNone) {
  const Plan rich = with({"nvidia0", "nvidia1"});
  raise(rich);
  const Fd kept = std::move(link_);
  const Plan poor = plan();
  raise(poor);
  EXPECT_EQ(run(poor, "ls /dev").output, kUsual);
  for (const char* attempt : {"mknod /root/nvidia0 c 1 5", "mknod /dev/nvidia0 c 1 5",
                              "head -c1 /proc/1/root/dev/nvidia0", "ls /s", "ls /old"}) {
    EXPECT_NE(run(poor, std::string("(") + attempt + ") 2>&1").exit.exitCode, 0) << attempt;
  }
  const Plan other = with({"nvidia1"});
  raise(other);
  EXPECT_EQ(run(other, "ls /dev | grep nvidia").output, "nvidia1\n");
}

TEST_F(DevicesTest, OnlyCharacterDevicesWithoutALinkAreTaken) {
  make("block", S_IFBLK, makedev(7, 0));
  make("fifo", S_IFIFO, 0);
  make("null", S_IFCHR, makedev(1, 3));
  std::ofstream(nodes() / "file") << "x";
  fs::create_directories(nodes() / "folder");
  fs::create_symlink("nvidia0", nodes() / "link");
  fs::create_symlink(nodes(), dir_.path() / "way");
  for (const char* name : {"block", "fifo", "file", "folder"}) {
    EXPECT_TRUE(refusal(with({name})).contains("is not a character device")) << name;
  }
  for (const char* name : {"link", "missing", "../nodes/nvidia0", "./nvidia0", "nvidia0/"}) {
    EXPECT_NE(refusal(with({name})), "") << name;
  }
  EXPECT_NE(refusal(at(dir_.path() / "way/nvidia0")), "");
  EXPECT_NE(refusal(at("nodes/nvidia0")), "");
  EXPECT_NE(refusal(at("")), "");
  EXPECT_NE(refusal(at("/")), "");
  // Nothing that is there already gives way.
  EXPECT_TRUE(refusal(with({"null"})).contains("cannot show"));
  EXPECT_TRUE(refusal(with({"nvidia0", "nvidia0"})).contains("cannot show"));
  EXPECT_EQ(refusal(with({"nvidia0", "nvidia1"})), "");
}

}  // namespace
}  // namespace cay::sandbox
