#include "layers/host_image.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using isolation::Mode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSecret = "SECRET";

// A small machine of our own, in a folder.
class HostImageTest : public ::testing::Test {
 protected:
  HostImageTest() {
    for (const char* folder : {"etc/ssl/certs", "usr/bin", "usr/lib", "usr/sbin", "opt", "root",
                               "home", "var/lib/dpkg/info", "var/lib/mysql", "run"}) {
      fs::create_directories(host_ / folder);
    }
    for (const char* name : {"bin", "lib", "sbin"}) {
      fs::create_directory_symlink(std::string("usr/") + name, host_ / name);
    }
    put("etc/passwd",
        "root:x:0:0:root:/var/root:/bin/sh\nme:$6$SECRET:1000:1000::/home/me:/bin/sh\n");
    put("etc/group", "root:x:0:\n");
    put("etc/hosts", "127.0.0.1 localhost\n");
    put("etc/hostname", "the-machine\n");
    put("etc/machine-id", "SECRET\n");
    put("usr/bin/tool", "tool", 0755);
    put("var/lib/dpkg/status", "Package: x\n");
    put("var/lib/dpkg/lock", "", 0640);
    put("var/lib/dpkg/info/x.list", "/.\n");
    put("var/lib/mysql/table", kSecret);
    fs::create_directories(images_);
  }

  void put(const std::string& name, std::string_view content, mode_t mode = 0644) {
    fs::create_directories((host_ / name).parent_path());
    const std::string path = (host_ / name).string();
    std::ofstream(path) << content;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  HostImage image(Mode mode = Mode::kUnprivileged) { return {images_, mode, host_}; }
  Image must(Result<Image> got) {
    EXPECT_TRUE(got) << got.error().message;
    return got ? *got : Image();
  }
  // Prepares the image and gives its skeleton.
  fs::path skeleton() { return must(image().current()).overlays.at(0).lowers.at(0); }
  size_t versions() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(fs::path(images_) / "host"),
                                             fs::directory_iterator()));
  }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static mode_t modeOf(const fs::path& path) {
    struct stat stat{};
    EXPECT_EQ(::lstat(path.c_str(), &stat), 0) << path;
    return stat.st_mode & 07777;
  }
  // Every file below the folder that holds the word.
  static std::vector<std::string> filesWithSecrets(const fs::path& folder) {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file() && read(entry.path()).find(kSecret) != std::string::npos) {
        out.push_back(entry.path().lexically_relative(folder).string());
      }
    }
    return out;
  }

  // Runs `body` in a child with mounts of its own; true if it says so and nothing failed.
  static bool withOwnMounts(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool ready = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      ::_exit(ready && body() && !HasFailure() ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  cay::testing::TempDir temp_;
  fs::path host_ = temp_.path() / "machine";
  std::string images_ = (temp_.path() / "state/images").string();
};

TEST_F(HostImageTest, IsASkeletonWithTheMachinesProgramsOverIt) {
  const Image image = must(this->image().current());
  EXPECT_EQ(image.name, "host");
  EXPECT_THAT(
      image.overlays,
      ElementsAre(isolation::Overlay{"/", {images_ + "/host/" + image.version + "/skeleton"}},
                  isolation::Overlay{"/usr", {(host_ / "usr").string()}}));
  const fs::path root = image.overlays[0].lowers[0];
  EXPECT_EQ(fs::read_symlink(root / "bin"), "usr/bin");
  EXPECT_TRUE(fs::is_empty(root / "usr"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(root / "lib64")));
  EXPECT_EQ(modeOf(root), 0755U);
  EXPECT_EQ(modeOf(root / "root"), 0700U);
  EXPECT_EQ(modeOf(root / "tmp"), 01777U);
  EXPECT_EQ(modeOf(root / "var/tmp"), 01777U);
  EXPECT_EQ(read(root / "var/lib/dpkg/info/x.list"), "/.\n");
  EXPECT_TRUE(fs::is_directory(root / "var/lib/apt/lists/partial"));
}

TEST_F(HostImageTest, FoldersThatAreNotLinksHaveTheirOwnOverlay) {
  fs::remove(host_ / "bin");
  put("bin/sh", "sh", 0755);
  put("opt/thing/run", "run", 0755);
  const Image image = must(this->image().current());
  ASSERT_EQ(image.overlays.size(), 4U);
  EXPECT_EQ(image.overlays[2].at, "/bin");
  EXPECT_EQ(image.overlays[3].at, "/opt");
  EXPECT_TRUE(fs::is_directory(fs::path(image.overlays[0].lowers[0]) / "bin"));
}

TEST_F(HostImageTest, NothingPrivateIsCopied) {
  for (const char* name : {"etc/shadow",
                           "etc/shadow-",
                           "etc/gshadow",
                           "etc/sudoers",
                           "etc/ssl/private/x.pem",
                           "etc/pki/tls/private/y.pem",
                           "etc/app/server.key",
                           "etc/krb5.keytab",
                           "etc/apt/auth.conf",
                           "etc/apt/auth.conf.d/a.conf",
                           "etc/ssh/ssh_host_ed25519_key",
                           "etc/wireguard/wg0.conf",
                           "etc/NetworkManager/system-connections/wifi",
                           "etc/passwd-",
                           "etc/app/credentials.json",
                           "root/.ssh/id",
                           "home/me/file",
                           "run/service.sock",
                           "var/log/app.log",
                           "etc/environment"}) {
    put(name, kSecret);  // even where everybody may read it
  }
  put("etc/closed-file", kSecret, 0640);
  put("etc/closed/file", kSecret);
  ASSERT_EQ(::chmod((host_ / "etc/closed").c_str(), 0710), 0);
  put("etc/unlisted/file", kSecret);
  ASSERT_EQ(::chmod((host_ / "etc/unlisted").c_str(), 0711), 0);
  ASSERT_EQ(::mkfifo((host_ / "etc/fifo").c_str(), 0666), 0);
  const fs::path root = skeleton();
  EXPECT_THAT(filesWithSecrets(root), ElementsAre());
  EXPECT_FALSE(fs::exists(root / "etc/closed"));
  EXPECT_FALSE(fs::exists(root / "etc/fifo"));
  EXPECT_FALSE(fs::exists(root / "var/lib/mysql"));
  EXPECT_TRUE(fs::is_empty(root / "root"));
  EXPECT_TRUE(fs::is_empty(root / "home"));
}

TEST_F(HostImageTest, SettingsAreCopiedAsTheyAre) {
  put("etc/app/conf", "conf", 0644);
  put("etc/app/script", "script", 04755);
  put("etc/ssl/certs/ca.pem", "ca");
  fs::create_symlink("/usr/share/zoneinfo/UTC", host_ / "etc/localtime");
  fs::create_symlink("/root/secret", host_ / "etc/link");
  const fs::path etc = skeleton() / "etc";
  EXPECT_EQ(read(etc / "app/conf"), "conf");
  EXPECT_EQ(modeOf(etc / "app/script"), 0755U);  // nothing of ours is setuid
  EXPECT_EQ(read(etc / "ssl/certs/ca.pem"), "ca");
  EXPECT_EQ(fs::read_symlink(etc / "localtime"), "/usr/share/zoneinfo/UTC");
  EXPECT_EQ(fs::read_symlink(etc / "link"), "/root/secret");
}

TEST_F(HostImageTest, WhatNamesTheMachineIsReplaced) {
  put("run/resolv.conf", "nameserver 192.0.2.1\n");
  fs::create_symlink("../run/resolv.conf", host_ / "etc/resolv.conf");
  const fs::path etc = skeleton() / "etc";
  EXPECT_EQ(read(etc / "resolv.conf"), "nameserver 192.0.2.1\n");
  EXPECT_FALSE(fs::is_symlink(etc / "resolv.conf"));
  EXPECT_EQ(read(etc / "hosts"), "127.0.0.1 localhost\n");
  EXPECT_EQ(read(etc / "hostname"), "sandbox\n");
  EXPECT_EQ(read(etc / "machine-id"), "");
  EXPECT_EQ(read(etc / "passwd"),
            "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n");
  EXPECT_EQ(read(etc / "shadow"), "root:*:::::::\nme:*:::::::\n");
}

TEST_F(HostImageTest, APrivateFileBehindALinkIsNotFollowed) {
  put("root/resolv.conf", kSecret, 0600);
  fs::create_symlink("../root/resolv.conf", host_ / "etc/resolv.conf");
  EXPECT_FALSE(fs::exists(fs::symlink_status(skeleton() / "etc/resolv.conf")));
}

TEST_F(HostImageTest, WhatIsMountedInEtcStaysOut) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put("outside/password", kSecret);
  put("outside/hosts", "192.0.2.9 mounted\n");
  fs::create_directories(host_ / "etc/mounted");
  put("etc/mounted-file", "");
  EXPECT_TRUE(withOwnMounts([&] {
    const auto bind = [&](const char* from, const char* to) {
      return ::mount((host_ / from).c_str(), (host_ / to).c_str(), nullptr, MS_BIND, nullptr) == 0;
    };
    if (!bind("outside", "etc/mounted") || !bind("outside/password", "etc/mounted-file") ||
        !bind("outside/hosts", "etc/hosts")) {
      return false;
    }
    const fs::path root = skeleton();
    EXPECT_THAT(filesWithSecrets(root), ElementsAre());
    // Container engines mount this one, and it is meant to be seen.
    EXPECT_EQ(read(root / "etc/hosts"), "192.0.2.9 mounted\n");
    return true;
  }));
}

TEST_F(HostImageTest, MasksHideWhatNotEverybodyMayRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  put("usr/lib/app/private.conf", kSecret, 0640);
  put("usr/lib/app/public.conf", "public", 0644);
  put("usr/lib/app/runs-only", kSecret, 0711);
  put("usr/lib/data/closed/file", kSecret, 0644);
  ASSERT_EQ(::chmod((host_ / "usr/lib/data/closed").c_str(), 0750), 0);
  ASSERT_EQ(::chmod((host_ / "usr/lib/data").c_str(), 02775), 0);
  ASSERT_EQ(::chown((host_ / "usr/lib/data").c_str(), 7, 8), 0);
  put("usr/bin/setuid", "su", 04755);
  ASSERT_EQ(::mknod((host_ / "usr/lib/device").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  put("usr/mounted/under", kSecret, 0600);
  put("opt/app/key.pem", kSecret, 0600);
  EXPECT_TRUE(withOwnMounts([&] {
    ::mount("none", (host_ / "usr/mounted").c_str(), "tmpfs", 0, nullptr);
    const Image image = must(this->image(Mode::kFull).current());
    if (image.overlays.size() != 3) return false;
    const fs::path at = temp_.path() / "merged";
    for (size_t i = 1; i < image.overlays.size(); ++i) {
      const isolation::Overlay& overlay = image.overlays[i];
      EXPECT_EQ(overlay.lowers.size(), 2U);
      fs::create_directories(at.string() + overlay.at);
      const std::string options = "lowerdir=" + overlay.lowers[0] + ":" + overlay.lowers[1];
      EXPECT_EQ(::mount("none", (at.string() + overlay.at).c_str(), "overlay", 0, options.c_str()),
                0);
    }
    EXPECT_THAT(filesWithSecrets(at), ElementsAre());
    EXPECT_EQ(read(at / "usr/lib/app/public.conf"), "public");
    EXPECT_EQ(modeOf(at / "usr/bin/setuid"), 04755U);
    EXPECT_FALSE(fs::exists(at / "usr/lib/device"));
    EXPECT_EQ(modeOf(at / "usr/lib/data"), 02775U);
    struct stat stat{};
    EXPECT_EQ(::stat((at / "usr/lib/data").c_str(), &stat), 0);
    EXPECT_EQ(stat.st_uid, 7U);
    EXPECT_EQ(stat.st_gid, 8U);
    return true;
  }));
}

TEST_F(HostImageTest, AClosedOptIsNotShownAtAll) {
  put("opt/app", kSecret);
  ASSERT_EQ(::chmod((host_ / "opt").c_str(), 0750), 0);
  EXPECT_EQ(must(image().current()).overlays.size(), 2U);
}

TEST_F(HostImageTest, IsPreparedOnceAndAgainAfterAChange) {
  const std::string first = must(image().current()).version;
  EXPECT_EQ(must(image().current()).version, first);
  if (::geteuid() == 0) {
    EXPECT_NE(must(image(Mode::kFull).current()).version, first) << "that one has masks";
  }
  put("etc/new", "");
  const std::string second = must(image().current()).version;
  EXPECT_NE(second, first);
  const Image restored = must(image().restore(first));
  EXPECT_EQ(restored.version, first);
  EXPECT_TRUE(fs::exists(fs::path(restored.overlays[0].lowers[0]) / "etc/hosts"));
}

TEST_F(HostImageTest, AChangeIsSeenByRefresh) {
  HostImage image = this->image();
  const std::string first = must(image.current()).version;
  put("etc/new", "");
  EXPECT_EQ(must(image.current()).version, first);
  ASSERT_TRUE(image.refresh());
  EXPECT_NE(must(image.current()).version, first);
  EXPECT_EQ(versions(), 2U);
  ASSERT_TRUE(image.refresh());
  EXPECT_EQ(versions(), 2U);
}

TEST_F(HostImageTest, ManyMayAskAtOnce) {
  HostImage image = this->image();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      EXPECT_FALSE(must(image.current()).version.empty());
      EXPECT_TRUE(image.refresh());
      image.removeUnused({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(versions(), 1U);
}

TEST_F(HostImageTest, IsPreparedAgainAfterADay) {
  const std::string first = must(image().current()).version;
  const size_t dot = first.find('.');
  const std::string old =
      first.substr(0, dot + 1) + std::to_string(std::stoll(first.substr(dot + 1)) - 86'401);
  fs::rename(images_ + "/host/" + first, images_ + "/host/" + old);
  EXPECT_NE(must(image().current()).version, old);
  EXPECT_EQ(versions(), 2U);
}

TEST_F(HostImageTest, UnusedVersionsAndHalfMadeOnesAreRemoved) {
  const std::string first = must(image().current()).version;
  put("etc/second", "");
  const std::string second = must(image().current()).version;
  put("etc/third", "");
  HostImage image = this->image();
  const std::string third = must(image.current()).version;
  fs::create_directories(images_ + "/host/new-0123456789abcdef/skeleton/etc");
  image.removeUnused({first});
  EXPECT_TRUE(image.restore(first));
  EXPECT_TRUE(image.restore(third));
  EXPECT_EQ(image.restore(second).error().code, Code::kNotFound);
  EXPECT_EQ(versions(), 2U);
  // A host that has just started and has not given out any keeps what it is about to use.
  this->image().removeUnused({});
  EXPECT_EQ(versions(), 1U);
  EXPECT_TRUE(image.restore(third));
}

TEST_F(HostImageTest, AFailureLeavesNothingBehind) {
  fs::remove_all(host_ / "etc");
  EXPECT_FALSE(image().current());
  EXPECT_EQ(versions(), 0U);
}

TEST_F(HostImageTest, VersionsAreNoPaths) {
  (void)must(image().current());
  for (const char* version : {"", ".", "..", "../..", "/", "new-0123456789abcdef", "x"}) {
    EXPECT_FALSE(image().restore(version)) << version;
  }
}

TEST_F(HostImageTest, TheStateFolderMustNotBeVisible) {
  images_ = (host_ / "usr/local/state/images").string();
  fs::create_directories(images_);
  const auto got = image().current();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kConflict);
  EXPECT_THAT(got.error().message, HasSubstr("state folder"));
  // Also behind a link.
  fs::create_directory_symlink(host_ / "usr/local", temp_.path() / "link");
  images_ = (temp_.path() / "link/state/images").string();
  EXPECT_FALSE(image().current());
}

TEST_F(HostImageTest, RestrictedSandboxesHaveNoRootOfTheirOwn) {
  const Image image = must(this->image(Mode::kRestricted).current());
  EXPECT_TRUE(image.overlays.empty());
  EXPECT_TRUE(fs::is_empty(images_));
}

TEST_F(HostImageTest, TheRealMachineGivesAnImage) {
  HostImage real(images_, Mode::kUnprivileged);
  const Image image = must(real.current());
  ASSERT_GE(image.overlays.size(), 2U);
  const fs::path root = image.overlays[0].lowers[0];
  for (const char* name : {"etc/passwd", "etc/hosts", "etc/group", "etc/ld.so.cache"}) {
    EXPECT_TRUE(fs::exists(root / name)) << name;
  }
}

}  // namespace
}  // namespace cay::layers
