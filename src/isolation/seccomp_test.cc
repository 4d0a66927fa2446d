#include "isolation/seccomp.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "isolation/child_fixture.h"
#include "sys/uapi.h"

namespace cay::isolation {
namespace {

// The errno of `act` behind the filter; 0 if it succeeds.
int behind(const FilterOptions& options, const std::function<long()>& act) {
  const Filter filter = makeFilter(options);
  return inChild([&] {
    if (install(filter.view()) != 0) return 255;
    return act() < 0 ? errno : 0;
  });
}
int behind(const std::function<long()>& act) {
  return behind({}, act);
}

// What the kernel would do with one call, without making it.
uint32_t answerFor(const Filter& filter, const seccomp_data& call) {
  uint32_t value = 0;
  for (size_t at = 0; at < filter.code.size(); ++at) {
    const sock_filter& step = filter.code[at];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&value, reinterpret_cast<const char*>(&call) + step.k, sizeof value);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += value == step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += value >= step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        at += (value & step.k) != 0 ? step.jt : step.jf;
        break;
      default:
        return step.k;
    }
  }
  return 0;
}

#if defined(__x86_64__)
constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif

uint32_t answerFor(const Filter& filter, int number, uint32_t arch = kArch) {
  seccomp_data call{};
  call.nr = number;
  call.arch = arch;
  return answerFor(filter, call);
}

constexpr uint32_t kDenied = SECCOMP_RET_ERRNO | EPERM;
constexpr uint32_t kMissing = SECCOMP_RET_ERRNO | ENOSYS;

TEST(Seccomp, IsShortEnoughForItsJumps) {
  EXPECT_LT(makeFilter({.denyIpc = true}).code.size(), 256U);
}

TEST(Seccomp, DeniesExactlyWhatTheDocumentationLists) {
  const Filter filter = makeFilter({});
  int denied = 0;
  for (int call = 0; call <= static_cast<int>(sys::kLastKnownSyscall); ++call) {
    if (answerFor(filter, call) == kDenied) ++denied;
  }
#if defined(__x86_64__)
  EXPECT_EQ(denied, 50);
#else
  EXPECT_EQ(denied, 45);
#endif
  for (const int call : {SYS_kexec_load, SYS_bpf, SYS_keyctl, SYS_mount, SYS_setns, SYS_reboot,
                         SYS_syslog, SYS_quotactl_fd, SYS_open_by_handle_at, 467}) {
    EXPECT_EQ(answerFor(filter, call), kDenied) << call;
  }
  for (const int call : {SYS_read, SYS_execve, SYS_ptrace, SYS_process_vm_writev, SYS_chroot,
                         SYS_mknodat, SYS_seccomp, SYS_landlock_create_ruleset, SYS_personality,
                         SYS_shmget, SYS_mq_open, SYS_pidfd_open, SYS_name_to_handle_at}) {
    EXPECT_EQ(answerFor(filter, call), SECCOMP_RET_ALLOW) << call;
  }
}

TEST(Seccomp, UnknownCallsAreMissing) {
  const Filter filter = makeFilter({});
  EXPECT_EQ(answerFor(filter, sys::kLastKnownSyscall), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answerFor(filter, sys::kLastKnownSyscall + 1), kMissing);
  EXPECT_EQ(answerFor(filter, -1), kMissing);
  EXPECT_EQ(answerFor(filter, SYS_clone3), kMissing);
  EXPECT_EQ(answerFor(filter, 0x40000000 | SYS_getpid), kMissing) << "x32";
}

TEST(Seccomp, OtherAbisEnd) {
  const Filter filter = makeFilter({});
  EXPECT_EQ(answerFor(filter, SYS_getpid, AUDIT_ARCH_I386), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(answerFor(filter, SYS_getpid, AUDIT_ARCH_ARM), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
  const auto interrupt = [] {
    long pid = 20;  // i386's getpid
    asm volatile("int $0x80" : "+a"(pid) : : "memory");
    return pid;
  };
  EXPECT_EQ(behind(interrupt), kKilledBy + SIGSYS);
  EXPECT_EQ(behind([] { return ::syscall(0x40000000 | SYS_getpid); }), ENOSYS) << "x32";
#endif
}

TEST(Seccomp, DeniesTheActsThemselves) {
  // What works here without a filter, so that EPERM is the filter's word: keyctl and io_uring for
  // everybody, mounts for root.
  EXPECT_EQ(behind([] { return ::syscall(SYS_keyctl, 0, -3, 0); }), EPERM);
  EXPECT_EQ(behind([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }), EPERM);
  EXPECT_EQ(behind([] { return ::syscall(SYS_userfaultfd, 1); }), EPERM);
  EXPECT_EQ(behind([] { return ::syscall(SYS_bpf, 0, nullptr, 0); }), EPERM);
  EXPECT_EQ(behind([] { return ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }), EPERM);
  EXPECT_EQ(behind([] { return ::mount("none", "/nowhere", "tmpfs", 0, nullptr); }), EPERM);
  EXPECT_EQ(behind([] { return ::setns(-1, 0); }), EPERM);
}

TEST(Seccomp, NamespacesCannotBeMadeByAnyCall) {
  for (const unsigned flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                              CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWTIME}) {
    EXPECT_EQ(behind([=] { return ::syscall(SYS_unshare, flag); }), EPERM) << flag;
  }
  EXPECT_EQ(behind([] { return ::unshare(CLONE_FILES | CLONE_FS); }), 0);
  const auto clone = [](unsigned long flags) {
    const long child = ::syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) ::_exit(0);
    return child;
  };
  EXPECT_EQ(behind([&] { return clone(CLONE_NEWUSER); }), EPERM);
  EXPECT_EQ(behind([&] { return clone(CLONE_NEWPID | CLONE_NEWNS); }), EPERM);
  EXPECT_EQ(behind([&] { return clone(0); }), 0);
  clone_args args{};
  args.flags = CLONE_NEWUSER;
  EXPECT_EQ(behind([&] { return ::syscall(SYS_clone3, &args, sizeof args); }), ENOSYS);
}

TEST(Seccomp, TerminalsCannotBeTypedInto) {
  // The upper half of an argument that the kernel cuts off must not hide it.
  for (const unsigned long request : {0x5412UL, 0x100005412UL, 0x541CUL, 0x5423UL}) {
    EXPECT_EQ(behind([=] { return ::syscall(SYS_ioctl, -1, request, nullptr); }), EPERM);
  }
  EXPECT_EQ(behind([] { return ::ioctl(-1, TIOCGWINSZ, nullptr); }), EBADF);
}

TEST(Seccomp, OnlyTheUsualSocketFamilies) {
  for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}) {
    const int type = family == AF_NETLINK ? SOCK_RAW : SOCK_STREAM;
    EXPECT_EQ(behind([=] { return ::socket(family, type, 0); }), 0) << family;
  }
  for (const int family : {AF_VSOCK, AF_ALG, AF_PACKET, AF_SMC}) {
    EXPECT_EQ(behind([=] { return ::socket(family, SOCK_STREAM, 0); }), EAFNOSUPPORT) << family;
  }
  EXPECT_EQ(behind([] { return ::socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP); }), EPROTONOSUPPORT);
  EXPECT_EQ(behind([] { return ::socket(AF_INET6, SOCK_STREAM, IPPROTO_MPTCP); }), EPROTONOSUPPORT);
  int ends[2];
  EXPECT_EQ(behind([&] { return ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends); }), 0);
}

TEST(Seccomp, SharedMemoryOfTheMachineOnRequest) {
  const auto make = [] {
    const int segment = ::shmget(IPC_PRIVATE, 4096, 0600);
    if (segment >= 0) ::shmctl(segment, IPC_RMID, nullptr);
    return segment;
  };
  EXPECT_EQ(behind({.denyIpc = true}, make), EPERM);
  EXPECT_EQ(behind({.denyIpc = false}, make), 0);
  EXPECT_EQ(behind({.denyIpc = true}, [] { return ::syscall(SYS_mq_open, "q", 0, 0, nullptr); }),
            EPERM);
}

TEST(Seccomp, TheFirstProcessIsOutOfReachOnRequest) {
  const FilterOptions shield{.shieldFirstProcess = true};
  EXPECT_EQ(behind(shield, [] { return ::kill(1, 0); }), EPERM);
  EXPECT_EQ(behind(shield, [] { return ::syscall(SYS_pidfd_open, 1, 0); }), EPERM);
  EXPECT_EQ(behind(shield, [] { return ::syscall(SYS_prlimit64, 1, RLIMIT_NOFILE, 0, 0); }), EPERM);
  EXPECT_EQ(behind(shield, [] { return ::setpriority(PRIO_PROCESS, 1, 19); }), EPERM);
  EXPECT_EQ(behind(shield, [] { return ::setpriority(PRIO_USER, 0, 19); }), EPERM);
  EXPECT_EQ(behind(shield, [] { return ::kill(::getpid(), 0); }), 0);
  EXPECT_EQ(behind(shield, [] { return ::setpriority(PRIO_PROCESS, 0, 19); }), 0);
  EXPECT_EQ(behind([] { return ::syscall(SYS_prlimit64, ::getpid(), RLIMIT_NOFILE, 0, 0); }), 0);
}

TEST(Seccomp, ThreadsSpawnsAndDebuggersWork) {
  EXPECT_EQ(behind([] {
              std::thread([] {}).join();
              return 0;
            }),
            0);
  EXPECT_EQ(behind([] {
              char name[] = "true";
              char* argv[] = {name, nullptr};
              pid_t child = 0;
              errno = ::posix_spawnp(&child, name, nullptr, nullptr, argv, environ);
              return errno == 0 ? 0 : -1;
            }),
            0);
  EXPECT_EQ(behind([]() -> long {
              const pid_t child = ::fork();
              if (child == 0) {
                while (true) ::pause();
              }
              const long result = ::ptrace(PTRACE_SEIZE, child, nullptr, nullptr);
              ::kill(child, SIGKILL);
              return result;
            }),
            0);
}

}  // namespace
}  // namespace cay::isolation
