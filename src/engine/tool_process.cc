#include "engine/tool_process.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX's
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace cay::engine {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kConfinedMemory = rlim_t{1} << 30;
constexpr rlim_t kConfinedFiles = 16;
constexpr int kNotStarted = 127;
constexpr int kOutOfTheWay = 16;

// All that follows runs between fork and exec, where only what is safe in a signal handler may be
// called.

void limit(int resource, rlim_t most) {
  const rlimit value{.rlim_cur = most, .rlim_max = most};
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &value) != 0) ::_exit(kNotStarted);
}

void confine() {
  limit(RLIMIT_AS, kConfinedMemory);
  limit(RLIMIT_NOFILE, kConfinedFiles);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CORE, 0);
  if (::geteuid() != 0) return;
  // By the calls themselves: those of the C library want to talk to our other threads.
  if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
      ::syscall(SYS_setresgid, kNobody, kNobody, kNobody) != 0 ||
      ::syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) {
    ::_exit(kNotStarted);
  }
}

struct Prepared {
  const ToolSpec& spec;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
};

[[noreturn]] void runTool(const Prepared& prepared) {
  const ToolSpec& spec = prepared.spec;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  std::array<int, 3> files = {spec.in, spec.out, spec.err};
  // Out of the way of each other first.
  for (int& file : files) {
    file = ::fcntl(file < 0 ? null : file, F_DUPFD_CLOEXEC, kOutOfTheWay);
    if (file < 0) ::_exit(kNotStarted);
  }
  for (int i = 0; i < 3; ++i) {
    if (::dup2(files[static_cast<size_t>(i)], i) != i) ::_exit(kNotStarted);
  }
  if (spec.fileBytes > 0) limit(RLIMIT_FSIZE, spec.fileBytes);
  if (spec.confined) confine();
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // After the change of the user, which would take it back.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != prepared.parent) ::_exit(kNotStarted);
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &usual, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(spec.program.c_str(), prepared.arguments, prepared.environment);
  ::_exit(kNotStarted);
}

}  // namespace

Result<ToolProcess> ToolProcess::start(const ToolSpec& spec) {
  std::vector<char*> arguments = {const_cast<char*>(spec.program.c_str())};
  for (const std::string& argument : spec.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  char* const none[] = {nullptr};
  const Prepared prepared{.spec = spec,
                          .arguments = arguments.data(),
                          .environment = spec.keepEnvironment ? ::environ : none,
                          .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) return failSys("fork", errno);
  if (pid == 0) runTool(prepared);
  return ToolProcess(pid, spec.program);
}

ToolProcess::~ToolProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait();
}

Result<> ToolProcess::wait() {
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  while (::waitpid(pid, &status, 0) == -1) {
    if (errno != EINTR) return failSys("waitpid", errno);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status)) {
    return fail(Code::kInternal, name_ + " failed with " + std::to_string(WEXITSTATUS(status)));
  }
  return fail(Code::kInternal, name_ + " was ended by signal " + std::to_string(WTERMSIG(status)));
}

Result<std::string> findTool(std::string_view name, std::string_view package) {
  for (const char* folder : {"/usr/local/bin/", "/usr/bin/", "/bin/"}) {
    std::string path = folder + std::string(name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return fail(Code::kExhausted,
              std::string(name) + " is not installed here (package " + std::string(package) + ")");
}

}  // namespace cay::engine
