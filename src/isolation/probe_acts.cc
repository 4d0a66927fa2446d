#include "isolation/probe_acts.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "base/text.h"
#include "isolation/capabilities.h"
#include "sys/io.h"
#include "sys/process.h"

namespace cay::isolation {
namespace {

Tried denied(std::string detail) {
  return {Outcome::kDenied, std::move(detail)};
}
Tried allowed(std::string detail) {
  return {Outcome::kAllowed, std::move(detail)};
}
Tried none(std::string detail) {
  return {Outcome::kNone, std::move(detail)};
}

// For acts whose every failure is a denial, because what they want may simply not be in sight.
Tried byResult(long result) {
  return result < 0 ? denied(errnoText(errno)) : allowed("it worked");
}

// For calls that must be refused as such: an answer about their arguments means that the kernel
// began to work on them.
Tried byCall(long result) {
  if (result < 0 && errno == ENOSYS) return none("the kernel does not have this call");
  if (result < 0 && errno != EPERM && errno != EACCES) {
    return allowed("the kernel took it: " + errnoText(errno));
  }
  return byResult(result);
}

Tried byOpen(const std::string& path, int flags) {
  const Fd file(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  return byResult(file.valid() ? 0 : -1);
}

// In a child, for what cannot be undone. `body` gives 0 for success or an errno.
Tried inChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) return none("fork: " + errnoText(errno));
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return denied("ended by signal " + std::to_string(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? allowed("it worked") : denied(errnoText(WEXITSTATUS(status)));
}

// An empty folder to work in, gone afterwards.
class Scratch {
 public:
  Scratch() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/cay-probe-XXXXXX";
    made_ = ::mkdtemp(path_.data()) != nullptr;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (made_) ::rmdir(path_.c_str());
  }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
  bool made_ = false;
};

// --- user, identity ---

Tried shareIds(const Bait& bait) {
  const std::string own = idMap();
  if (own.empty()) return none("/proc/self/uid_map cannot be read");
  return own == bait.ids ? allowed(own) : denied("its own are " + own);
}

// Our uid as the host sees it.
uint64_t outsideUid(const Bait& bait) {
  const std::string own = idMap();
  if (own == bait.ids) return ::getuid();
  const auto map = words(own);  // inside, outside, count
  if (map.size() < 2) return ::getuid();
  return ::getuid() - parseUint(map[0]).value_or(0) + parseUint(map[1]).value_or(0);
}

Tried beHostUser(const Bait& bait) {
  const uint64_t uid = outsideUid(bait);
  const std::string text = "uid " + std::to_string(uid) + " outside";
  return uid == bait.uid ? allowed(text) : denied(text);
}

Tried keepGroups(const Bait&) {
  const int count = ::getgroups(0, nullptr);
  return count > 0 ? allowed(std::to_string(count) + " groups") : denied("no groups");
}

Tried makeUserNamespace(const Bait&) {
  return inChild([] { return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno; });
}

Tried writeCorePattern(const Bait&) {
  return byOpen("/proc/sys/kernel/core_pattern", O_WRONLY);
}

// --- pid ---

bool hostIsInSight(const Bait& bait) {
  return bait.processStart != 0 && sys::processStart(bait.process).value_or(0) == bait.processStart;
}

Tried seeHostProcess(const Bait& bait) {
  return hostIsInSight(bait) ? allowed("process " + std::to_string(bait.process))
                             : denied("not in sight");
}

Tried signalHost(const Bait& bait) {
  if (!hostIsInSight(bait)) return denied("not in sight");
  return byResult(::kill(bait.process, 0));
}

// The keeper is the parent of every command.
Tried signalKeeper(const Bait&) {
  return byResult(::kill(::getppid(), 0));
}

Tried traceKeeper(const Bait&) {
  return inChild([keeper = ::getppid()] {
    return ::ptrace(PTRACE_SEIZE, keeper, nullptr, nullptr) == 0 ? 0 : errno;
  });
}

std::string ofKeeper(const char* name) {
  return "/proc/" + std::to_string(::getppid()) + "/" + name;
}
Tried readKeeperEnvironment(const Bait&) {
  return byOpen(ofKeeper("environ"), O_RDONLY);
}
Tried openKeeperMemory(const Bait&) {
  return byOpen(ofKeeper("mem"), O_RDWR);
}
Tried rewriteKeeper(const Bait&) {
  const Fd program(::open(ofKeeper("exe").c_str(), O_WRONLY | O_CLOEXEC));
  // "Text file busy" is not a denial: it can be written to once all keepers have ended.
  if (!program.valid() && errno == ETXTBSY) return allowed("once it has ended");
  return byResult(program.valid() ? 0 : -1);
}

// --- mount ---

Tried findHostFile(const Bait& bait) {
  return byResult(::access(bait.file.c_str(), F_OK));
}
Tried readHostFile(const Bait& bait) {
  return byOpen(bait.file, O_RDONLY);
}

Tried mountSomething(const Bait&) {
  const Scratch folder;
  if (!folder.made()) return none("no folder to mount on");
  const Tried tried = byResult(::mount("cay-probe", folder.path(), "tmpfs", 0, nullptr));
  ::umount2(folder.path(), MNT_DETACH);
  return tried;
}

Tried leaveChroot(const Bait& bait) {
  const Scratch folder;
  if (!folder.made()) return none("no folder to change to");
  return inChild([&] {
    const Fd outside(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!outside.valid() || ::chroot(folder.path()) != 0 || ::fchdir(outside.get()) != 0) {
      return errno;
    }
    for (int depth = 0; depth < 32; ++depth) (void)!::chdir("..");
    if (::chroot(".") != 0) return errno;
    return ::access(bait.file.c_str(), F_OK) == 0 ? 0 : errno;
  });
}

// --- ipc, uts, network, landlock ---

Tried attachHostMemory(const Bait& bait) {
  if (bait.sharedMemory < 0) return none("the host has no shared memory to offer");
  void* const at = ::shmat(bait.sharedMemory, nullptr, SHM_RDONLY);
  const Tried tried = byResult(reinterpret_cast<intptr_t>(at) == -1 ? -1 : 0);
  if (tried.outcome == Outcome::kAllowed) ::shmdt(at);
  return tried;
}

Tried seeHostName(const Bait& bait) {
  utsname own{};
  ::uname(&own);
  return bait.hostName == own.nodename ? allowed(own.nodename) : denied("another name");
}
Tried setHostName(const Bait&) {
  utsname own{};
  ::uname(&own);
  return byResult(::sethostname(own.nodename, std::strlen(own.nodename)));
}

Tried reachHostPort(const Bait& bait) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(bait.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return byResult(
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

Tried bindPort(const Bait& bait) {
  if (isOwn(bait.network)) return none("its network is its own");
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  return byResult(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any));
}

Tried listenAnywhere(const Bait& bait) {
  if (isOwn(bait.network)) return none("its network is its own");
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return byResult(::listen(socket.get(), 1));
}

Tried reachAbstractSocket(const Bait& bait) {
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const AbstractAddress address(bait.socket);
  return byResult(::connect(socket.get(), address.get(), address.length));
}

// --- seccomp ---

Tried callKeyctl(const Bait&) {
  constexpr int kGetKeyringId = 0;
  constexpr int kSessionKeyring = -3;
  return byCall(::syscall(SYS_keyctl, kGetKeyringId, kSessionKeyring, 0));
}
Tried callIoUring(const Bait&) {
  return byCall(::syscall(SYS_io_uring_setup, 1, nullptr));
}
Tried callUserfaultfd(const Bait&) {
  constexpr int kUserModeOnly = 1;
  return byCall(::syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly));
}
Tried callBpf(const Bait&) {
  return byCall(::syscall(SYS_bpf, 0, nullptr, 0));
}
Tried callPerf(const Bait&) {
  return byCall(::syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
}
Tried callKexec(const Bait&) {
  constexpr unsigned long kNoSuchFlags = 0xFF00;
  return byCall(::syscall(SYS_kexec_load, 0, 0, nullptr, kNoSuchFlags));
}
Tried callSetns(const Bait&) {
  const Fd space(::open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
  return byCall(::syscall(SYS_setns, space.get(), 0));
}
Tried openVsock(const Bait&) {
  const Fd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return byResult(socket.valid() ? 0 : -1);
}

Tried callAsI386(const Bait&) {
#if defined(__x86_64__)
  return inChild([] {
    long pid = 20;  // getpid there
    asm volatile("int $0x80" : "+a"(pid) : : "memory");
    return pid > 0 ? 0 : ENOSYS;
  });
#else
  return none("another processor");
#endif
}
Tried callAsX32(const Bait&) {
#if defined(__x86_64__)
  constexpr long kX32 = 0x40000000;
  return byResult(::syscall(kX32 | SYS_getpid));
#else
  return none("another processor");
#endif
}

// --- capabilities, privileges ---

Tried holdCapabilities(const Bait&) {
  const std::string status = sys::readFile("/proc/self/status").value_or("");
  constexpr std::string_view kField = "CapPrm:\t";
  const size_t at = status.find(kField);
  CapabilitySet held = 0;
  if (at == std::string::npos ||
      std::from_chars(status.data() + at + kField.size(), status.data() + status.size(), held, 16)
              .ec != std::errc()) {
    return none("/proc/self/status cannot be read");
  }
  const std::string_view digits = std::string_view(status).substr(at + kField.size(), 16);
  const std::string text = "set " + std::string(digits);
  return (held & ~kCommandCapabilities) != 0 ? allowed(text) : denied(text);
}

Tried makeDevice(const Bait&) {
  const Scratch folder;
  if (!folder.made()) return none("no folder to make it in");
  const std::string path = std::string(folder.path()) + "/null";
  const Tried tried = byResult(::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 3)));
  ::unlink(path.c_str());
  return tried;
}

Tried openRawDevice(const Bait&) {
  for (const char* path : {"/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda",
                           "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control"}) {
    if (byOpen(path, O_RDONLY).outcome == Outcome::kAllowed) return allowed(path);
  }
  return denied("none can be opened");
}

Tried raiseLimit(const Bait&) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ++files.rlim_max;
  return inChild([&] { return ::setrlimit(RLIMIT_NOFILE, &files) == 0 ? 0 : errno; });
}

Tried gainByExec(const Bait&) {
  return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? denied("no_new_privs is set")
                                                       : allowed("no_new_privs is not set");
}

// --- limits ---

Tried startTooMany(const Bait& bait) {
  constexpr uint64_t kMostTried = 4096;
  if (bait.pids == 0 || bait.pids > kMostTried) return none("no limit to try");
  std::vector<pid_t> children;
  Tried tried = allowed("one more than " + std::to_string(bait.pids));
  while (children.size() <= bait.pids) {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) ::pause();
    }
    if (child < 0) {
      tried = denied(errnoText(errno));
      break;
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return tried;
}

Tried useTooMuch(const Bait& bait) {
  constexpr uint64_t kMostTried = uint64_t{4} << 30;
  if (bait.memoryBytes == 0 || bait.memoryBytes > kMostTried) return none("no limit to try");
  return inChild([&] {
    // To be the one that is chosen to die.
    if (const Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); file.valid()) {
      (void)sys::writeAll(file.get(), "1000");
    }
    const uint64_t size = bait.memoryBytes + bait.memoryBytes / 4;
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return errno;
    for (uint64_t at = 0; at < size; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
    return 0;
  });
}

constexpr Weight kBreaks = Weight::kBreaks;
constexpr Weight kWeakens = Weight::kWeakens;

constexpr Act kActs[] = {
    {"user", "share the host's user ids", kWeakens, shareIds},
    {"user", "make a user namespace", kBreaks, makeUserNamespace},
    {"user", "write the host's core_pattern", kBreaks, writeCorePattern},
    {"identity", "be the host's user", kBreaks, beHostUser},
    {"identity", "keep groups of the host", kWeakens, keepGroups},
    {"pid", "see a process of the host", kWeakens, seeHostProcess},
    {"pid", "signal a process of the host", kBreaks, signalHost},
    {"pid", "signal the keeper", kWeakens, signalKeeper},
    {"pid", "trace the keeper", kBreaks, traceKeeper},
    {"pid", "read the keeper's environment", kBreaks, readKeeperEnvironment},
    {"pid", "open the keeper's memory", kBreaks, openKeeperMemory},
    {"pid", "rewrite the keeper's program", kBreaks, rewriteKeeper},
    {"mount", "find a file of the host", kWeakens, findHostFile},
    {"mount", "read a file of the host", kBreaks, readHostFile},
    {"mount", "mount a file system", kBreaks, mountSomething},
    {"mount", "leave a chroot", kBreaks, leaveChroot},
    {"ipc", "attach shared memory of the host", kBreaks, attachHostMemory},
    {"uts", "see the host's name", kWeakens, seeHostName},
    {"uts", "change the host's name", kBreaks, setHostName},
    {"network", "reach a port of the host's loopback", kWeakens, reachHostPort},
    {"network", "bind a TCP port of the host", kBreaks, bindPort},
    {"network", "listen at a random port of the host", kWeakens, listenAnywhere},
    {"landlock", "reach an abstract socket of the host", kBreaks, reachAbstractSocket},
    {"seccomp", "call keyctl", kBreaks, callKeyctl},
    {"seccomp", "call io_uring_setup", kBreaks, callIoUring},
    {"seccomp", "call userfaultfd", kBreaks, callUserfaultfd},
    {"seccomp", "call bpf", kBreaks, callBpf},
    {"seccomp", "call perf_event_open", kBreaks, callPerf},
    {"seccomp", "call kexec_load", kBreaks, callKexec},
    {"seccomp", "call setns", kBreaks, callSetns},
    {"seccomp", "open a vsock", kBreaks, openVsock},
    {"seccomp", "call as i386 does", kBreaks, callAsI386},
    {"seccomp", "call as x32 does", kBreaks, callAsX32},
    {"capabilities", "hold a dangerous capability", kBreaks, holdCapabilities},
    {"capabilities", "make a device", kBreaks, makeDevice},
    {"capabilities", "open a raw device", kBreaks, openRawDevice},
    {"capabilities", "raise its own limits", kBreaks, raiseLimit},
    {"privileges", "gain privileges by starting a program", kBreaks, gainByExec},
    {"pids", "start more processes than allowed", kBreaks, startTooMany},
    {"memory", "use more memory than allowed", kBreaks, useTooMuch},
};

}  // namespace

std::span<const Act> acts() {
  return kActs;
}

}  // namespace cay::isolation
