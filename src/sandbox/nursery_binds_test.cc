// Files and folders of the host in a sandbox, whose image and whose neighbours are hostile.
#include <sched.h>
#include <sys/sysmacros.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "sandbox/nursery_fixture.h"
#include "sys/io.h"
#include "sys/mount.h"
#include "sys/namespaces.h"

namespace cay::sandbox {
namespace {

class BindsTest : public NurseryTest {
 protected:
  void SetUp() override {
    NurseryTest::SetUp();
    if (IsSkipped()) return;
    fs::create_directories(volume());
    fs::create_directories(outside());
    write(volume() / "file", "of the volume\n");
    write(outside() / "secret", "of the host\n");
    write(hosts(), "127.0.0.1 localhost\n");
  }

  fs::path volume() { return dir_.path() / "volume"; }
  fs::path outside() { return dir_.path() / "outside"; }
  fs::path hosts() { return dir_.path() / "hosts"; }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string textOfFile(const fs::path& path) {
    return sys::readFile(path.c_str()).value_or("");
  }
  static uid_t ownerOf(const fs::path& path) {
    struct stat info{};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_uid;
  }

  Plan with(std::vector<isolation::Bind> binds) {
    Plan out = plan();
    out.binds = std::move(binds);
    return out;
  }
};

TEST_F(BindsTest, AFolderIsSharedWithTheSandboxsOwnIds) {
  const Plan sandbox = with({{.source = volume(), .at = "/data/deep"}});
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "cat /data/deep/file; stat -c %u /data /data/deep/file").output,
            "of the volume\n0\n0\n");
  EXPECT_EQ(run(sandbox, "echo new > /data/deep/new && chown 5 /data/deep/new").exit.exitCode, 0);
  EXPECT_EQ(textOfFile(volume() / "new"), "new\n");
  EXPECT_EQ(ownerOf(volume() / "new"), 5U) << "what the id is inside, and no id of the sandbox";
  EXPECT_EQ(ownerOf(folderOf(sandbox) / "tops/0/upper/data"), sandbox.firstUid);
}

TEST_F(BindsTest, ReadOnlyStaysReadOnly) {
  const Plan sandbox =
      with({{.source = volume(), .at = "/data", .readOnly = true},
            {.source = hosts(), .at = "/etc/hosts", .readOnly = true, .isFile = true}});
  raise(sandbox);
  for (const char* attempt :
       {"echo x > /data/file", "echo x > /data/new", "rm /data/file", "chmod 777 /data",
        "touch /data/file", "mv /data /moved", "rmdir /data", "mount -o remount,rw,bind /data",
        "umount /data", "umount -l /data", "echo x >> /etc/hosts", "rm /etc/hosts",
        "mv /etc/hosts /etc/other", "mount --bind /tmp /data",
        "unshare -Urm sh -c 'umount /data || mount -o remount,rw,bind /data'"}) {
    EXPECT_NE(run(sandbox, std::string("(") + attempt + ") 2>&1").exit.exitCode, 0) << attempt;
  }
  EXPECT_EQ(textOfFile(volume() / "file"), "of the volume\n");
  EXPECT_EQ(textOfFile(hosts()), "127.0.0.1 localhost\n");
  EXPECT_FALSE(fs::exists(volume() / "new"));
}

TEST_F(BindsTest, DevicesAndSetUserIdProgramsAreDead) {
  ASSERT_EQ(::mknod((volume() / "zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  fs::copy_file("/usr/bin/id", volume() / "id");
  ASSERT_EQ(::chown((volume() / "id").c_str(), 7, 7), 0);
  ASSERT_EQ(::chmod((volume() / "id").c_str(), 06755), 0);
  const Plan sandbox = with({{.source = volume(), .at = "/data"}});
  raise(sandbox);
  EXPECT_NE(run(sandbox, "head -c1 /data/zero").exit.exitCode, 0);
  EXPECT_EQ(run(sandbox, "/data/id -u").output, "0\n");
  const std::string flags = run(sandbox, "grep ' /data ' /proc/self/mountinfo").output;
  EXPECT_TRUE(flags.contains("nosuid") && flags.contains("nodev")) << flags;
}

TEST_F(BindsTest, ALinkOfTheImageIsNeverFollowed) {
  const std::string out = outside();
  fs::create_symlink(out, skeleton() / "absolute");
  fs::create_symlink("../../../../../../../../../" + out, skeleton() / "climbing");
  fs::create_symlink("/etc", skeleton() / "inner");
  fs::create_symlink("/proc/1/root" + out, skeleton() / "magic");
  fs::create_symlink("loop", skeleton() / "loop");
  for (const char* name : {"absolute", "climbing", "inner", "magic", "loop"}) {
    for (const char* below : {"", "/a", "/a/b"}) {
      const std::string at = "/" + std::string(name) + below;
      const std::string why = refusal(with({{.source = volume(), .at = at}}));
      EXPECT_TRUE(why.contains("'/" + std::string(name) + "' is a link")) << at << ": " << why;
      if (*below == '\0') continue;
      const std::string file = refusal(with({{.source = hosts(), .at = at, .isFile = true}}));
      EXPECT_TRUE(file.contains("is a link")) << at << ": " << file;
    }
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 1) << "nothing was made out there";
  EXPECT_FALSE(fs::exists("/etc/a"));
  EXPECT_FALSE(fs::exists(skeleton() / "etc/a"));
}

TEST_F(BindsTest, AFileTakesThePlaceOfALinkInTheSandboxAlone) {
  fs::create_symlink(outside() / "secret", skeleton() / "etc/hosts");
  fs::create_symlink("../run/nowhere/resolv.conf", skeleton() / "etc/resolv.conf");
  const Plan sandbox =
      with({{.source = hosts(), .at = "/etc/hosts", .readOnly = true, .isFile = true},
            {.source = hosts(), .at = "/etc/resolv.conf", .isFile = true}});
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "cat /etc/hosts /etc/resolv.conf").output,
            "127.0.0.1 localhost\n127.0.0.1 localhost\n");
  EXPECT_EQ(run(sandbox, "test -L /etc/hosts").exit.exitCode, 1);
  EXPECT_EQ(textOfFile(outside() / "secret"), "of the host\n");
  EXPECT_TRUE(fs::is_symlink(skeleton() / "etc/hosts"));
  // In place, as a new member of a group is written into it.
  write(hosts(), "10.0.0.1 peer\n");
  EXPECT_EQ(run(sandbox, "cat /etc/hosts").output, "10.0.0.1 peer\n");
}

TEST_F(BindsTest, SomePlacesAreNotToBeHad) {
  for (const char* at :
       {"/", "", "data", "/proc", "/proc/sys", "/dev", "/dev/shm", "/sys", "/sys/x", "/data/",
        "/data//x", "/data/../etc", "/./data", "/..", "//proc"}) {
    EXPECT_NE(refusal(with({{.source = volume(), .at = at}})), "") << at;
  }
  EXPECT_NE(refusal(with({{.source = volume(), .at = std::string("/a\0b", 4)}})), "");
  write(skeleton() / "plain", "");
  EXPECT_TRUE(refusal(with({{.source = volume(), .at = "/plain"}})).contains("not a folder"));
  EXPECT_TRUE(refusal(with({{.source = volume(), .at = "/plain/x"}})).contains("not a folder"));
  EXPECT_TRUE(refusal(with({{.source = hosts(), .at = "/etc", .isFile = true}}))
                  .contains("not a regular file"));
}

TEST_F(BindsTest, ASourceIsWhatItIsSaidToBeAndNoLink) {
  EXPECT_NE(refusal(with({{.source = dir_.path() / "missing", .at = "/data"}})), "");
  EXPECT_NE(refusal(with({{.source = hosts(), .at = "/data"}})), "");
  EXPECT_NE(refusal(with({{.source = volume(), .at = "/data", .isFile = true}})), "");
  EXPECT_NE(refusal(with({{.source = "volume", .at = "/data"}})), "");
  // What a job with the same volume may have put there for the next one.
  fs::create_symlink(outside(), volume() / "way");
  fs::create_symlink(outside() / "secret", volume() / "link");
  fs::create_directories(outside() / "sub");
  EXPECT_NE(refusal(with({{.source = volume() / "way", .at = "/data"}})), "");
  EXPECT_NE(refusal(with({{.source = volume() / "way/sub", .at = "/data"}})), "");
  EXPECT_NE(refusal(with({{.source = volume() / "link", .at = "/data", .isFile = true}})), "");
  ASSERT_EQ(::mkfifo((volume() / "fifo").c_str(), 0666), 0);
  EXPECT_NE(refusal(with({{.source = volume() / "fifo", .at = "/data", .isFile = true}})), "");
}

// /proc is such a file system.
TEST_F(BindsTest, WhatCannotBeShownWithOtherOwnersIsOnlyForAllToRead) {
  const std::string open = "/proc/sys/kernel/ostype";
  const Plan sandbox = with({{.source = open, .at = "/data", .readOnly = true, .isFile = true}});
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "cat /data").output, "Linux\n");
  EXPECT_NE(run(sandbox, "echo x >/data").exit.exitCode, 0);
  end();
  for (const isolation::Bind& bind :
       {isolation::Bind{.source = open, .at = "/data", .isFile = true},
        isolation::Bind{.source = "/proc/sys/kernel", .at = "/data", .readOnly = true},
        isolation::Bind{.source = "/proc/kmsg", .at = "/data", .readOnly = true, .isFile = true}}) {
    EXPECT_TRUE(refusal(with({bind})).contains("with other owners")) << bind.source;
  }
}

TEST_F(BindsTest, WhatIsMountedBelowASourceIsNotSeen) {
  fs::create_directories(volume() / "sub");
  ASSERT_TRUE(sys::unshare(CLONE_NEWNS));
  ASSERT_TRUE(sys::makeMountsPrivate());
  ASSERT_TRUE(sys::mountAt((volume() / "sub").c_str(), "tmpfs", {{"size", "64k"}}, {}));
  write(volume() / "sub/secret", "x");
  startNursery();
  const Plan sandbox = with({{.source = volume(), .at = "/data"}});
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "ls -A /data/sub").output, "");
  EXPECT_TRUE(sys::detachMount((volume() / "sub").c_str()));
}

TEST_F(BindsTest, OneBindMayLieInAnother) {
  fs::create_directories(dir_.path() / "second");
  write(dir_.path() / "second/file", "second\n");
  const Plan sandbox = with({{.source = volume(), .at = "/data"},
                             {.source = dir_.path() / "second", .at = "/data/in/it"}});
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "cat /data/file /data/in/it/file").output, "of the volume\nsecond\n");
  EXPECT_EQ(ownerOf(volume() / "in/it"), 0U) << "the volume's own root";
}

// Another job exchanges folders of a volume for links while this one's keeper walks through them.
TEST_F(BindsTest, ARaceOverLinksLeadsNowhere) {
  fs::create_directories(volume() / "way");
  fs::create_directories(volume() / "spare");
  std::atomic<bool> done = false;
  std::thread attacker([&] {
    while (!done) {
      std::error_code ignored;
      fs::rename(volume() / "way", volume() / "spare", ignored);
      fs::create_symlink(outside(), volume() / "way", ignored);
      fs::remove(volume() / "way", ignored);
      fs::rename(volume() / "spare", volume() / "way", ignored);
    }
  });
  for (int i = 0; i < 40; ++i) {
    const Plan sandbox = with({{.source = volume(), .at = "/data"},
                               {.source = hosts(), .at = "/data/way/hosts", .isFile = true},
                               {.source = volume(), .at = "/data/way/deep"}});
    (void)refusal(sandbox);  // it may be mounted or not
  }
  done = true;
  attacker.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(outside()), {}), 1)
      << "nothing was made out there";
  EXPECT_EQ(textOfFile(outside() / "secret"), "of the host\n");
}

TEST_F(BindsTest, AnImageWithoutAnyFoldersAndWithoutWriteAccessWillDo) {
  const fs::path bare = dir_.path() / "bare";
  fs::create_directories(bare);
  fs::create_directories(bare / "usr");
  for (const char* name : {"bin", "lib", "lib64"}) {
    fs::create_symlink(fs::path("usr") / name, bare / name);
  }
  ASSERT_EQ(::chmod(bare.c_str(), 0555), 0);
  Plan sandbox = with({{.source = volume(), .at = "/root"}});
  sandbox.root[0].lowers = {bare};
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "cat /root/file; ls -d /proc/1 /dev/null").output,
            "of the volume\n/dev/null\n/proc/1\n");
}

TEST_F(BindsTest, AnImageMayHaveManyLayers) {
  Plan sandbox = plan();
  for (int i = 0; i < 100; ++i) {
    const fs::path layer = dir_.path() / "layers" / std::to_string(i);
    fs::create_directories(layer / "made");
    write(layer / "made" / std::to_string(i), "");
    write(layer / "made/top", std::to_string(i) + "\n");
    sandbox.root[0].lowers.insert(sandbox.root[0].lowers.begin() + i, layer);
  }
  raise(sandbox);
  EXPECT_EQ(run(sandbox, "ls /made | wc -l; cat /made/top").output, "101\n0\n");
  end();
  Plan tooMany = plan();
  for (int i = 0; i < 130; ++i) tooMany.root[0].lowers.emplace_back(skeleton());
  EXPECT_TRUE(refusal(tooMany).contains("more than 120 layers"));
}

}  // namespace
}  // namespace cay::sandbox
