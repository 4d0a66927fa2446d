#include "isolation/seccomp.h"

#include <asm/ioctls.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "sys/uapi.h"

namespace cay::isolation {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kNativeArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kNativeArch = AUDIT_ARCH_AARCH64;
#else
#error "the filter knows x86_64 and arm64 only"
#endif

constexpr uint32_t kDenied[] = {
    // Other kernels, modules and the machine itself.
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_vhangup,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_quotactl,
    sys::kSysQuotactlFd,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
    // The clock, which is everybody's.
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    // Large parts of the kernel that break often. io_uring would also act past this filter, which
    // sees calls and not what is in a ring.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_fanotify_init,
    SYS_fanotify_mark,
    // Keyrings, which belong to a uid and not to a sandbox.
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // Mounts, other namespaces, and files by number past every folder.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    sys::kSysOpenTreeAttr,
    SYS_setns,
    SYS_open_by_handle_at,
#if defined(__x86_64__)
    // The processor's ports, and modules as they were made long ago.
    SYS_iopl,
    SYS_ioperm,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
#endif
};

constexpr uint32_t kIpc[] = {SYS_shmget, SYS_shmat,      SYS_shmctl,  SYS_shmdt,    SYS_semget,
                             SYS_semop,  SYS_semctl,     SYS_msgget,  SYS_msgsnd,   SYS_msgrcv,
                             SYS_msgctl, SYS_semtimedop, SYS_mq_open, SYS_mq_unlink};

// What reaches another process of the same user by its number, without tracing it: in the first
// argument, or in the second.
constexpr uint32_t kByFirst[] = {SYS_kill,
                                 SYS_tkill,
                                 SYS_tgkill,
                                 SYS_rt_sigqueueinfo,
                                 SYS_rt_tgsigqueueinfo,
                                 SYS_pidfd_open,
                                 SYS_prlimit64,
                                 SYS_sched_setaffinity,
                                 SYS_sched_setscheduler,
                                 SYS_sched_setparam,
                                 SYS_sched_setattr};
constexpr uint32_t kBySecond[] = {SYS_setpriority, SYS_ioprio_set};

// What clone and unshare must not be asked for. CLONE_NEWTIME is a flag of unshare only: in clone's
// those bits are the signal.
constexpr uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint32_t kNewTime = 0x80;

// Typing into somebody's terminal, the console's own calls, and line disciplines, which are drivers
// that nobody looks after.
constexpr uint32_t kTerminalTricks[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

constexpr uint32_t answerWith(int error) {
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error);
}

// The low half of an argument, which is all that the kernel looks at in the calls checked here.
constexpr uint32_t argument(unsigned index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

// Jumps are written to labels, and a label is placed anywhere after them.
class Assembler {
 public:
  using Label = size_t;

  Label newLabel() {
    places_.push_back(0);
    return places_.size() - 1;
  }
  void place(Label label) { places_[label] = code_.size(); }

  void load(uint32_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
  // `test`: BPF_JEQ, BPF_JGE or BPF_JSET.
  void branch(uint16_t test, uint32_t value, Label yes, Label no) {
    branches_.push_back({code_.size(), yes, no});
    code_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), value, 0, 0));
  }

  std::vector<sock_filter> finish() {
    // A jump reaches 255 steps; the whole program is shorter (see the test).
    const auto distance = [&](Label label, size_t from) {
      return static_cast<uint8_t>(places_[label] - from - 1);
    };
    for (const Branch& branch : branches_) {
      code_[branch.at].jt = distance(branch.yes, branch.at);
      code_[branch.at].jf = distance(branch.no, branch.at);
    }
    return std::move(code_);
  }

 private:
  struct Branch {
    size_t at;
    Label yes;
    Label no;
  };
  std::vector<sock_filter> code_;
  std::vector<Branch> branches_;
  std::vector<size_t> places_;
};

using Label = Assembler::Label;

// From this number of a call on, up to the next one's, the answer is at `target`.
struct Segment {
  uint32_t first;
  Label target;
};

// A binary search, not a list: the kernel runs the program once for every call number when it is
// installed, to know which calls need not be looked at again, and each command pays for that.
void emitSearch(Assembler& as, std::span<const Segment> segments) {
  const auto lower = segments.first(segments.size() / 2);
  const auto upper = segments.subspan(lower.size());
  const auto entry = [&](std::span<const Segment> part) {
    return part.size() == 1 ? part.front().target : as.newLabel();
  };
  const Label toLower = entry(lower);
  const Label toUpper = entry(upper);
  as.branch(BPF_JGE, upper.front().first, toUpper, toLower);
  if (lower.size() > 1) {
    as.place(toLower);
    emitSearch(as, lower);
  }
  if (upper.size() > 1) {
    as.place(toUpper);
    emitSearch(as, upper);
  }
}

// All call numbers from 0 on: `listed` ones as they say, those between them to `others`, those
// after the last that we know to `unknown`.
std::vector<Segment> segmentsOf(std::vector<Segment> listed, Label others, Label unknown) {
  std::ranges::sort(listed, {}, &Segment::first);
  std::vector<Segment> out;
  const auto add = [&](uint32_t first, Label target) {
    if (out.empty() || out.back().target != target) out.push_back({first, target});
  };
  uint32_t next = 0;
  for (const Segment& call : listed) {
    if (call.first > next) add(next, others);
    add(call.first, call.target);
    next = call.first + 1;
  }
  add(next, others);
  add(sys::kLastKnownSyscall + 1, unknown);
  return out;
}

}  // namespace

Filter makeFilter(const FilterOptions& options) {
  Assembler as;
  const Label native = as.newLabel();
  const Label foreign = as.newLabel();
  const Label allow = as.newLabel();
  const Label deny = as.newLabel();
  const Label missing = as.newLabel();
  const Label clone = as.newLabel();
  const Label unshare = as.newLabel();
  const Label ioctl = as.newLabel();
  const Label socket = as.newLabel();
  const Label byFirst = as.newLabel();
  const Label bySecond = as.newLabel();

  std::vector<Segment> calls = {
      {SYS_clone, clone},
      // Its flags are in memory, where the filter cannot look; libraries then use clone.
      {SYS_clone3, missing},
      {SYS_unshare, unshare},
      {SYS_ioctl, ioctl},
      {SYS_socket, socket},
      {SYS_socketpair, socket},
  };
  for (const uint32_t call : kDenied) calls.push_back({call, deny});
  if (options.denyIpc) {
    for (const uint32_t call : kIpc) calls.push_back({call, deny});
  }

  if (options.shieldFirstProcess) {
    for (const uint32_t call : kByFirst) calls.push_back({call, byFirst});
    for (const uint32_t call : kBySecond) calls.push_back({call, bySecond});
  }

  as.load(offsetof(seccomp_data, arch));
  as.branch(BPF_JEQ, kNativeArch, native, foreign);
  as.place(native);
  as.load(offsetof(seccomp_data, nr));
  // x32 calls have bit 30 set and so are among the unknown ones.
  emitSearch(as, segmentsOf(std::move(calls), allow, missing));

  as.place(clone);
  as.load(argument(0));
  as.branch(BPF_JSET, kNewNamespaces, deny, allow);

  as.place(byFirst);
  as.load(argument(0));
  as.branch(BPF_JEQ, 1, deny, allow);

  // All processes of a user, or one.
  as.place(bySecond);
  as.load(argument(0));
  const Label one = as.newLabel();
  as.branch(BPF_JEQ, PRIO_USER, deny, one);
  as.place(one);
  as.load(argument(1));
  as.branch(BPF_JEQ, 1, deny, allow);

  as.place(unshare);
  as.load(argument(0));
  as.branch(BPF_JSET, kNewNamespaces | kNewTime, deny, allow);

  as.place(ioctl);
  as.load(argument(1));
  for (const uint32_t request : kTerminalTricks) {
    const Label next = as.newLabel();
    as.branch(BPF_JEQ, request, deny, next);
    as.place(next);
  }
  as.answer(SECCOMP_RET_ALLOW);

  // Of the families only those that programs use: vsock, for one, reaches past the machine to its
  // hypervisor. Multipath TCP is left out because Landlock does not know it for TCP.
  as.place(socket);
  as.load(argument(0));
  const Label internet = as.newLabel();
  for (const auto& [family, target] : {Segment{AF_UNIX, allow}, Segment{AF_NETLINK, allow},
                                       Segment{AF_INET, internet}, Segment{AF_INET6, internet}}) {
    const Label next = as.newLabel();
    as.branch(BPF_JEQ, family, target, next);
    as.place(next);
  }
  as.answer(answerWith(EAFNOSUPPORT));
  as.place(internet);
  as.load(argument(2));
  const Label multipath = as.newLabel();
  as.branch(BPF_JEQ, IPPROTO_MPTCP, multipath, allow);
  as.place(multipath);
  as.answer(answerWith(EPROTONOSUPPORT));

  as.place(allow);
  as.answer(SECCOMP_RET_ALLOW);
  as.place(deny);
  as.answer(answerWith(EPERM));
  as.place(missing);
  as.answer(answerWith(ENOSYS));
  // Calls of another ABI (i386 on x86_64) have other numbers. A program made of them could not even
  // exit if they all failed, so it ends at the first one, by a signal that says why (SIGSYS).
  as.place(foreign);
  as.answer(SECCOMP_RET_KILL_PROCESS);
  return {as.finish()};
}

int install(const sock_fprog& program) {
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

}  // namespace cay::isolation
