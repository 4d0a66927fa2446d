#include "sandbox/launch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"

namespace cay::sandbox {
namespace {

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

enum class Step { kNone, kSession, kDescriptors, kLimits, kWalls, kDirectory, kExec };

// What the child needs, prepared beforehand: between clone and exec it shares memory with the
// keeper and must neither allocate nor lock.
struct ChildWork {
  const char* cwd;
  char* const* argv;
  char* const* env;
  const char* const* candidates;  // paths to try, null at the end
  int stdio[3];
  rlimit openFiles;
  const isolation::Inside* inside;
  void (*beforeExec)(int herald);
  int herald;

  // Written by the child, read by the parent after it is gone.
  Step failedStep = Step::kNone;
  int error = 0;
  const char* failedPath = nullptr;
  const char* failedWall = nullptr;
};

// exec's answer for a candidate that is simply not there; PATH search goes on to the next one.
bool isMissing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

int childMain(void* argument) {
  auto& work = *static_cast<ChildWork*>(argument);
  const auto failed = [&](Step step) {
    work.failedStep = step;
    work.error = errno;
    ::_exit(127);
    return 127;
  };
  // A session of its own: terminal signals of the host cannot reach it, and its group can be
  // signalled.
  if (::setsid() < 0) return failed(Step::kSession);
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(work.stdio[fd], fd) < 0) return failed(Step::kDescriptors);
  }
  if (::setrlimit(RLIMIT_NOFILE, &work.openFiles) != 0) return failed(Step::kLimits);
  if (work.inside != nullptr) work.failedWall = work.inside->enter();
  if (work.failedWall != nullptr) return failed(Step::kWalls);
  if (work.beforeExec != nullptr) work.beforeExec(work.herald);
  // The keeper's descriptors lead out of the sandbox: a working directory below /proc/self/fd must
  // not find them.
  constexpr unsigned kFirstOfKeeper = 3;
  if (::syscall(SYS_close_range, kFirstOfKeeper, ~0U, 0) != 0 && work.inside != nullptr) {
    return failed(Step::kDescriptors);
  }
  if (::chdir(work.cwd) != 0) return failed(Step::kDirectory);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int worst = ENOENT;
  work.failedPath = work.candidates[0];
  for (const char* const* path = work.candidates; *path != nullptr; ++path) {
    ::execve(*path, work.argv, work.env);
    if (isMissing(errno)) continue;
    if (worst != ENOENT && errno == EACCES) continue;
    worst = errno;
    work.failedPath = *path;
    if (errno != EACCES) break;
  }
  errno = worst;
  return failed(Step::kExec);
}

std::string_view pathOf(const ExecSpec& spec) {
  for (const std::string& entry : spec.env) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return kDefaultPath;
}

std::vector<std::string> candidatesFor(const ExecSpec& spec) {
  const std::string& name = spec.argv.front();
  if (name.contains('/')) return {name};
  std::vector<std::string> out;
  std::string_view path = pathOf(spec);
  while (true) {
    const size_t end = path.find(':');
    const std::string_view folder = path.substr(0, end);
    out.push_back((folder.empty() ? "." : std::string(folder)) + "/" + name);
    if (end == std::string_view::npos) return out;
    path.remove_prefix(end + 1);
  }
}

std::vector<char*> pointersTo(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool isShortage(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

StartFailure describe(const ExecSpec& spec, const ChildWork& work) {
  const std::string name = quoted(spec.argv.front());
  const std::string reason = errnoText(work.error);
  if (work.failedStep == Step::kWalls) {
    return {StartFault::kShortage, 0,
            "cannot put " + name + " behind its walls (" + work.failedWall + "): " + reason};
  }
  if (isShortage(work.error)) {
    return {StartFault::kShortage, 0, "cannot start " + name + ": " + reason};
  }
  switch (work.failedStep) {
    case Step::kDirectory:
      return {StartFault::kRequest, 0,
              "cannot use " + quoted(spec.cwd) + " as the working directory (cwd): " + reason};
    case Step::kExec:
      break;
    default:
      return {StartFault::kShortage, 0, "cannot prepare " + name + ": " + reason};
  }
  switch (work.error) {
    case ENOENT:
      if (::access(work.failedPath, F_OK) == 0) {
        return {StartFault::kCommand, 127,
                name + ": the interpreter or loader that it asks for was not found"};
      }
      return {StartFault::kCommand, 127, name + ": command not found"};
    case E2BIG:
      return {StartFault::kCommand, 126, name + ": argument list too long"};
    case EACCES:
      return {StartFault::kCommand, 126, name + ": not executable (permission denied)"};
    default:
      return {StartFault::kCommand, 126, name + ": " + reason};
  }
}

}  // namespace

Launched launch(const LaunchPlan& plan) {
  const ExecSpec& spec = plan.spec;
  const std::vector<std::string> candidates = candidatesFor(spec);
  const std::vector<char*> argv = pointersTo(spec.argv);
  const std::vector<char*> env = pointersTo(spec.env);
  const std::vector<char*> paths = pointersTo(candidates);
  ChildWork work{.cwd = spec.cwd.c_str(),
                 .argv = argv.data(),
                 .env = env.data(),
                 .candidates = paths.data(),
                 .stdio = {plan.stdio[0], plan.stdio[1], plan.stdio[2]},
                 .openFiles = plan.openFiles,
                 .inside = plan.inside,
                 .beforeExec = plan.beforeExec,
                 .herald = plan.herald};
  auto born =
      sys::cloneVfork({.child = childMain, .argument = &work, .intoCgroup = plan.intoCgroup});
  if (!born) {
    return std::unexpected(
        StartFailure{StartFault::kShortage, 0, "cannot start a process: " + born.error().message});
  }
  if (work.failedStep == Step::kNone) return std::move(*born);
  (void)sys::reap(born->pid);
  return std::unexpected(describe(spec, work));
}

}  // namespace cay::sandbox
