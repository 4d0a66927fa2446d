// clone3 with CLONE_NEWUSER (and mount, network), whose flags lie in memory: does the child become root there,
// and can it then mount?
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct args { uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup; };

int main(void) {
  const uint64_t sets[] = {0x10000000, 0x10000000 | 0x20000, 0x10000000 | 0x20000 | 0x40000000, 0x20000, 0x40000000};
  for (int i = 0; i < 5; i++) {
    struct args a;
    memset(&a, 0, sizeof a);
    a.flags = sets[i];
    a.exit_signal = 17;
    long child = syscall(435, &a, sizeof a);
    if (child == 0) {
      if (!(sets[i] & 0x10000000)) printf("BREACH a namespace without a user namespace\n");
      if (mount("none", "/", 0, MS_REMOUNT | MS_BIND, 0) == 0) printf("BREACH remounted the root\n");
      if (mount("none", "/proc", "proc", 0, 0) == 0) printf("BREACH mounted proc\n");
      fflush(stdout);
      _exit(0);
    }
    if (child < 0) printf("refused: %s\n", strerror(errno));
    else waitpid(child, 0, 0);
  }
  printf("END\n");
  return 0;
}
