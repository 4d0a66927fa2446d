#include "isolation/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "isolation/child_fixture.h"
#include "testing/temp_dir.h"

namespace cay::isolation {
namespace {

class Landlock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (landlockAbi() < 6) GTEST_SKIP() << "Landlock here is of ABI " << landlockAbi();
  }
};

// The errno of `act` in the domain; 0 if it succeeds.
int inDomain(const DomainRules& rules, const std::function<long()>& act) {
  return inChild([&] {
    const auto ruleset = makeRuleset(rules);
    if (!ruleset || !enterDomain(*ruleset)) return 255;
    return act() < 0 ? errno : 0;
  });
}

// A listener at an abstract name, in the calling process.
sockaddr_un abstractName() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "cay-test-" + std::to_string(::getpid());
  name.copy(address.sun_path + 1, name.size());
  return address;
}
Fd listenAt(const sockaddr_un& address) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}
int connectTo(const sockaddr_un& address) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}
int bindTcp() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any);
}
int openFile(const std::string& path, int flags) {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0600);
}

TEST_F(Landlock, AbstractSocketsOfOthersAreOutOfReach) {
  const sockaddr_un address = abstractName();
  const Fd listener = listenAt(address);
  EXPECT_EQ(inDomain({}, [&] { return connectTo(address); }), EPERM);
}

TEST_F(Landlock, ProcessesOfOneDomainReachEachOther) {
  EXPECT_EQ(inDomain({},
                     []() -> long {
                       const sockaddr_un address = abstractName();
                       const Fd listener = listenAt(address);
                       const pid_t idle = ::fork();
                       if (idle == 0) {
                         while (true) ::pause();
                       }
                       // A sibling of the one above, as two commands of a sandbox are.
                       const int sibling = inChild([&] {
                         if (connectTo(address) != 0) return 1;
                         return ::kill(idle, SIGKILL) == 0 ? 0 : 2;
                       });
                       errno = 200 + sibling;
                       return sibling == 0 ? 0 : -1;
                     }),
            0);
}

TEST_F(Landlock, SignalsReachNobodyOutside) {
  const pid_t self = ::getpid();
  EXPECT_EQ(inDomain({}, [=] { return ::kill(self, 0); }), EPERM);
}

TEST_F(Landlock, TcpPortsCannotBeBoundOnRequest) {
  EXPECT_EQ(inDomain({.denyTcpBind = true}, bindTcp), EACCES);
  EXPECT_EQ(inDomain({.denyTcpBind = false}, bindTcp), 0);
}

TEST_F(Landlock, WithoutFileRulesFilesAreAsTheyWere) {
  const testing::TempDir folder;
  const std::string path = folder.path() / "new";
  EXPECT_EQ(inDomain({}, [&] { return openFile(path, O_WRONLY | O_CREAT); }), 0);
}

class LandlockFiles : public Landlock {
 protected:
  int act(const std::function<long()>& body) {
    return inDomain({.denyTcpBind = true, .files = sharedRootFiles(home_)}, body);
  }

  testing::TempDir folder_;
  const std::string other_ = folder_.write("other", "secret");
  const std::string home_ = [this] {
    std::string home = folder_.path() / "home";
    std::filesystem::create_directory(home);
    return home;
  }();
};

TEST_F(LandlockFiles, TheHomeIsWhole) {
  EXPECT_EQ(act([&]() -> long {
              const std::string a = home_ + "/a";
              const std::string file = a + "/file";
              if (::mkdir(a.c_str(), 0700) != 0) return -1;
              if (openFile(file, O_RDWR | O_CREAT) < 0) return -1;
              if (::truncate(file.c_str(), 10) != 0) return -1;
              if (::rename(file.c_str(), (home_ + "/moved").c_str()) != 0) return -1;
              if (::symlink("moved", (a + "/link").c_str()) != 0) return -1;
              if (openFile(a, O_RDONLY | O_DIRECTORY) < 0) return -1;
              if (::unlink((a + "/link").c_str()) != 0) return -1;
              return ::rmdir(a.c_str());
            }),
            0);
}

TEST_F(LandlockFiles, WhatIsOutsideCannotBeOpenedMadeOrRemoved) {
  const std::string beside = folder_.path() / "beside";
  EXPECT_EQ(act([&] { return openFile(other_, O_RDONLY); }), EACCES);
  EXPECT_EQ(act([&] { return openFile(beside, O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(act([&] { return ::truncate(other_.c_str(), 0); }), EACCES);
  EXPECT_EQ(act([&] { return ::unlink(other_.c_str()); }), EACCES);
  EXPECT_EQ(act([&] { return ::link(other_.c_str(), (home_ + "/mine").c_str()); }), EXDEV);
  EXPECT_EQ(act([&] { return openFile(folder_.path(), O_RDONLY | O_DIRECTORY); }), EACCES);
  for (const char* path : {"/run", "/var", "/root", "/dev/shm", "/tmp", "/"}) {
    EXPECT_EQ(act([=] { return openFile(path, O_RDONLY | O_DIRECTORY); }), EACCES) << path;
  }
  EXPECT_EQ(act([] { return openFile("/dev/shm/cay-test", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(act([] { return openFile("/etc/cay-test", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(act([] { return openFile("/proc/sys/kernel/core_pattern", O_WRONLY); }), EACCES);
}

TEST_F(LandlockFiles, WhatProgramsNeedIsThere) {
  for (const char* path : {"/etc/passwd", "/etc/resolv.conf", "/proc/self/maps", "/proc/meminfo",
                           "/sys/devices/system/cpu/online"}) {
    if (::access(path, R_OK) != 0) continue;  // not on this machine
    EXPECT_EQ(act([=] { return openFile(path, O_RDONLY); }), 0) << path;
  }
  EXPECT_EQ(act([] { return openFile("/dev/null", O_RDWR | O_TRUNC); }), 0);
  EXPECT_EQ(act([] { return openFile("/dev/urandom", O_RDONLY); }), 0);
  EXPECT_EQ(act([] { return ::system("ls /usr >/dev/null && test $(nproc) -ge 1"); }), 0);
  EXPECT_EQ(act([]() -> long {
              const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
              if (terminal < 0 || ::unlockpt(terminal) != 0) return -1;
              return openFile(::ptsname(terminal), O_RDWR | O_NOCTTY);
            }),
            0);
}

TEST_F(Landlock, NothingIsAllowedWhereAPathIsMissing) {
  const auto ruleset = makeRuleset({.files = {{{"/nowhere/at/all", Access::kAll}}}});
  ASSERT_TRUE(ruleset) << ruleset.error().message;
  EXPECT_TRUE(ruleset->valid());
}

}  // namespace
}  // namespace cay::isolation
