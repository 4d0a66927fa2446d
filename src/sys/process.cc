#include "sys/process.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/text.h"
#include "sys/io.h"
#include "sys/uapi.h"

namespace cay::sys {
namespace {

constexpr size_t kChildStackBytes = 64 * 1024;

// One stack serves every child: cloneVfork returns only when the last one has left it.
void* childStack() {
  static void* stack = ::mmap(nullptr, kChildStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  return stack;
}

// The child wakes on the new stack with the caller's registers and goes straight into `child`;
// returning through a C function would use the caller's frame, which is shared.
long rawClone3(clone_args* args, int (*child)(void*), void* argument) {
#if defined(__x86_64__)
  long result = SYS_clone3;
  register auto function asm("r12") = child;
  register void* parameter asm("r13") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "ud2\n"
      "1:"
      : "+a"(result)
      : "D"(args), "S"(sizeof(clone_args)), "r"(function), "r"(parameter)
      : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long result asm("x0") = reinterpret_cast<long>(args);
  register size_t size asm("x1") = sizeof(clone_args);
  register auto function asm("x19") = child;
  register void* parameter asm("x20") = argument;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x20\n\t"
      "blr x19\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(number), "r"(size), "r"(function), "r"(parameter)
      : "memory");
  return result;
#else
#error "cloneVfork knows x86_64 and arm64 only"
#endif
}

}  // namespace

Result<Born> cloneVfork(const VforkOptions& options) {
  void* stack = childStack();
  if (stack == MAP_FAILED) return failSys("mmap of a stack for the child", ENOMEM);
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(stack);
  args.stack_size = kChildStackBytes;
  if (options.intoCgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(options.intoCgroup);
  }
  const long pid = rawClone3(&args, options.child, options.argument);
  if (pid < 0) return failSys("clone3", static_cast<int>(-pid));
  return Born{static_cast<pid_t>(pid), Fd(pidfd)};
}

Result<pid_t> cloneHolder(uint64_t namespaces) {
  static char stack[4096];  // never left by the last one before it is reaped
  clone_args args{};
  args.flags = CLONE_VM | namespaces;
  args.exit_signal = SIGCHLD;
  args.stack = reinterpret_cast<uint64_t>(stack);
  args.stack_size = sizeof stack;
  const auto wait = [](void*) -> int {
    while (true) (void)::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
  };
  const long pid = rawClone3(&args, wait, nullptr);
  if (pid < 0) return failSys("clone3", static_cast<int>(-pid));
  return static_cast<pid_t>(pid);
}

Result<Fd> pidfdOpen(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return failSys("pidfd_open(" + std::to_string(pid) + ")", errno);
  return Fd(static_cast<int>(fd));
}

bool pidfdSignal(const Fd& pidfd, int signal) {
  return ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0;
}

bool pidfdSignalGroup(const Fd& pidfd, pid_t leader, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, kPidfdSignalProcessGroup) ==
      0) {
    return true;
  }
  return errno == EINVAL && ::kill(-leader, signal) == 0;  // before Linux 6.9
}

Result<uint64_t> processStart(pid_t pid) {
  CAY_ASSIGN(const std::string stat, readFile(("/proc/" + std::to_string(pid) + "/stat").c_str()));
  // Field 22; the name, field 2, may hold anything and is in brackets.
  constexpr size_t kField = 22 - 3;
  const size_t name = stat.rfind(')');
  if (name == std::string::npos) return fail(Code::kNotFound, "the process has ended");
  const auto fields = words(std::string_view(stat).substr(name + 1));
  const auto start = fields.size() > kField ? parseUint(fields[kField]) : std::nullopt;
  if (!start) return fail(Code::kInternal, "/proc/<pid>/stat has a strange form");
  return *start;
}

std::optional<pid_t> peekEndedChild() {
  siginfo_t info{};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  return info.si_pid;
}

std::optional<Ended> reap(pid_t pid) {
  Ended ended;
  ended.pid = ::wait4(pid, &ended.status, WNOHANG, &ended.usage);
  if (ended.pid <= 0) return std::nullopt;
  return ended;
}

IoCounter::IoCounter(pid_t pid)
    : file_(::open(("/proc/" + std::to_string(pid) + "/io").c_str(), O_RDONLY | O_CLOEXEC)) {}

IoCounter::Counts IoCounter::read() const {
  Counts counts;
  if (!file_.valid()) return counts;
  char text[512];
  const ssize_t length = ::pread(file_.get(), text, sizeof text, 0);
  if (length <= 0) return counts;
  const std::string_view all(text, static_cast<size_t>(length));
  const auto field = [&](std::string_view name) {
    uint64_t value = 0;
    if (const size_t at = all.find(name); at != std::string_view::npos) {
      std::from_chars(all.data() + at + name.size(), all.data() + all.size(), value);
    }
    return value;
  };
  counts.readBytes = field("rchar: ");
  counts.writtenBytes = field("wchar: ");
  return counts;
}

}  // namespace cay::sys
