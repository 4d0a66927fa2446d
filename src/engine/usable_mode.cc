#include "engine/usable_mode.h"

#include <linux/sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "sys/process.h"

namespace cay::engine {
namespace {

constexpr uint64_t kOfEachJob = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET;

Result<> tryNamespaces(uint64_t namespaces) {
  CAY_ASSIGN(const pid_t pid, sys::cloneHolder(namespaces));
  ::kill(pid, SIGKILL);
  (void)::waitpid(pid, nullptr, 0);
  return {};
}

}  // namespace

Result<isolation::Mode> usableMode() {
  if (::geteuid() == 0) {
    const auto tried = tryNamespaces(kOfEachJob);
    if (tried) return isolation::Mode::kFull;
    return fail(
        Code::kExhausted,
        "jobs need namespaces, which root has with CAP_SYS_ADMIN alone, and that is withheld "
        "here (" +
            tried.error().message +
            "): grant it to this container, or run the hub as an ordinary user who may make "
            "user namespaces");
  }
  const auto tried = tryNamespaces(CLONE_NEWUSER | kOfEachJob);
  if (tried) return isolation::Mode::kUnprivileged;
  return fail(Code::kExhausted,
              "jobs need namespaces, and an ordinary user may make none here (" +
                  tried.error().message +
                  "): allow user namespaces (user.max_user_namespaces and what the distribution or "
                  "the container's seccomp profile adds to it), or run the hub as root with "
                  "CAP_SYS_ADMIN");
}

}  // namespace cay::engine
