// The same forbidden calls by the doors of other ABIs, where a filter for x86-64 does not look.
//   other_abis x32|i386
// Each call runs in a child of its own, since a filter may answer with death.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct call { const char *name; long x32, i386; long a, b, c; };
static const struct call calls[] = {
    {"keyctl", 250, 288, 0, -3, 1}, {"add_key", 248, 286, 0, 0, 0},     {"bpf", 321, 357, 0, 0, 0},
    {"userfaultfd", 323, 374, 0, 0, 0}, {"io_uring_setup", 425, 425, 1, 0, 0}, {"unshare mount", 272, 310, 0x20000, 0, 0},
    {"mount", 165, 21, 0, 0, 0},    {"pivot_root", 155, 217, 0, 0, 0},  {"perf_event_open", 298, 336, 0, 0, 0},
    {"kexec_load", 528, 283, 0, 0, 0}, {"ptrace", 521, 26, 16, 1, 0},
};

static long i386(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

static long x32(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number | 0x40000000), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

int main(int count, char **words) {
  int old = count > 1 && strcmp(words[1], "i386") == 0;
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      const struct call *c = &calls[i];
      long result = old ? i386(c->i386, c->a, c->b, c->c) : x32(c->x32, c->a, c->b, c->c);
      printf("%s: %ld\n", c->name, result);
      // EPERM and ENOSYS are the filter's or the kernel's no; anything else means that the call was looked at.
      if (result != -EPERM && result != -ENOSYS && result != -EACCES) printf("BREACH %s is let through: %ld\n", c->name, result);
      fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) printf("%s: ended by signal %d\n", calls[i].name, WTERMSIG(status));
  }
  printf("END\n");
  return 0;
}
