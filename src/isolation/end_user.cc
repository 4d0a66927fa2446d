#include "isolation/end_user.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>

#include "sys/io.h"
#include "sys/process.h"

namespace cay::isolation {
namespace {

struct Work {
  uid_t uid;
  int error = 0;
};

// kill(-1) reaches whom the caller may signal, so the caller becomes that user first.
int killAsUser(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  if (::syscall(SYS_setresuid, work.uid, work.uid, work.uid) != 0 || ::kill(-1, SIGKILL) != 0) {
    work.error = errno;
  }
  ::_exit(0);
}

}  // namespace

Result<> endAllOf(uid_t uid) {
  if (uid == 0) return fail(Code::kInternal, "root's processes are not a sandbox's");
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Work work{.uid = uid};
  const auto born = sys::cloneVfork({.child = killAsUser, .argument = &work});
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!born) return std::unexpected(born.error());
  siginfo_t info{};  // whoever reaps children here may have been faster
  (void)::waitid(P_PIDFD, static_cast<id_t>(born->pidfd.get()), &info, WEXITED);
  if (work.error != 0 && work.error != ESRCH) {
    return failSys("ending the processes of uid " + std::to_string(uid), work.error);
  }
  return {};
}

bool anyLeftOf(uid_t uid) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return true;
  const std::string wanted = "\nUid:\t" + std::to_string(uid) + "\t";
  while (const dirent* entry = ::readdir(processes.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const auto status = sys::readFile(("/proc/" + std::string(entry->d_name) + "/status").c_str());
    if (status && status->contains(wanted) && !status->contains("\nState:\tZ")) return true;
  }
  return false;
}

}  // namespace cay::isolation
