#include "engine/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "net/readable.h"

namespace cay::engine {
namespace {

constexpr int kOutOfTheWay = 64;
constexpr int kNotStarted = 127;

struct Prepared {
  const char* program;
  char* const* arguments;
  char* const* environment;
  std::vector<int>* descriptors;  // out of the way already
  int users;
  int network;
  const std::vector<int>* groups;
  bool endsWithUs;
  sigset_t mask;
  int error = 0;
};

// Shares our memory: nothing but system calls.
int becomeProgram(void* argument) {
  auto& prepared = *static_cast<Prepared*>(argument);
  const auto giveUp = [&] {
    prepared.error = errno;
    ::_exit(kNotStarted);
  };
  if (::setsid() < 0) giveUp();
  if (prepared.endsWithUs && ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) giveUp();
  for (const int group : *prepared.groups) {
    if (::write(group, "0", 1) != 1) giveUp();
  }
  if (prepared.users >= 0 && ::setns(prepared.users, CLONE_NEWUSER) != 0) giveUp();
  if (prepared.network >= 0 && ::setns(prepared.network, CLONE_NEWNET) != 0) giveUp();
  int number = 0;
  for (const int descriptor : *prepared.descriptors) {
    if (::dup2(descriptor, number++) < 0) giveUp();
  }
  // What we ignore it would ignore too.
  struct sigaction byDefault{};
  byDefault.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) (void)::sigaction(signal, &byDefault, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.program, prepared.arguments, prepared.environment);
  giveUp();
  return 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<sys::Born> startChild(const ChildSpec& spec) {
  const std::string failure = "cannot start " + spec.program;
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return failSys(failure, errno);
  std::vector<Fd> high;
  std::vector<int> numbers;
  for (const int descriptor : spec.descriptors) {
    high.emplace_back(
        ::fcntl(descriptor < 0 ? null.get() : descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!high.back().valid()) return failSys(failure, errno);
    numbers.push_back(high.back().get());
  }
  std::vector<std::string> arguments = spec.arguments;
  arguments.insert(arguments.begin(), spec.program);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> environment = pointers(spec.environment);
  Prepared prepared{.program = spec.program.c_str(),
                    .arguments = argv.data(),
                    .environment = environment.data(),
                    .descriptors = &numbers,
                    .users = spec.users,
                    .network = spec.network,
                    .groups = &spec.groups,
                    .endsWithUs = spec.endsWithUs,
                    .mask = {}};
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &prepared.mask);
  auto born = sys::cloneVfork({.child = becomeProgram, .argument = &prepared});
  ::pthread_sigmask(SIG_SETMASK, &prepared.mask, nullptr);
  if (!born) return std::unexpected(std::move(born).error().wrap(failure));
  if (prepared.error != 0) {
    (void)sys::reap(born->pid);
    return failSys(failure, prepared.error);
  }
  return born;
}

net::Task<int> childEnded(Fd pidfd) {
  const Fd ended = co_await net::readable(std::move(pidfd));
  siginfo_t info{};
  if (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(ended.get()), &info, WEXITED) !=
      0) {
    co_return 0;
  }
  co_return info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status & 0x7f;
}

}  // namespace cay::engine
