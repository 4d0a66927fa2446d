#include "isolation/enclosure.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "isolation/capabilities.h"
#include "isolation/landlock.h"
#include "isolation/network.h"
#include "isolation/root.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/namespaces.h"

namespace cay::isolation {
namespace {

constexpr rlim_t kOpenFilesSoft = 4096;
constexpr rlim_t kOpenFilesHard = 16384;

Result<Fd> openFolder(int dir, const char* path) {
  Fd folder(::openat(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return failSys(path, errno);
  return folder;
}

rlimit capped(int resource, rlim_t soft, rlim_t hard) {
  rlimit own{};
  (void)::syscall(SYS_prlimit64, 0, resource, nullptr, &own);
  return {.rlim_cur = std::min(soft, own.rlim_max), .rlim_max = std::min(hard, own.rlim_max)};
}

DomainRules rulesFor(const Tools& tools, const Plan& plan, const LimitGroup& group, int logFolder) {
  DomainRules rules;
  rules.denyTcpBind = plan.network == Network::kHost;
  if (plan.mode != Mode::kRestricted) return rules;
  rules.files = sharedRootFiles(tools.sandboxes + "/" + plan.id + "/home");
  // The keeper is in the domain too. What it needs belongs to another user than the commands.
  rules.files->push_back({sys::fdPath(logFolder), Access::kAll});
  if (group.execs.valid()) {
    rules.files->push_back({sys::fdPath(group.execs.get()), Access::kAll});
  }
  return rules;
}

}  // namespace

Result<Tools> Tools::make(Mode mode, const std::string& sandboxes, const std::string& groupName,
                          const Fd& users) {
  // Mapped into a sandbox, the machine's root would stay just that.
  if (mode == Mode::kUnprivileged && ::geteuid() == 0) {
    return fail(Code::kInvalid, "the unprivileged mode is for ordinary users, not for root");
  }
  Tools tools;
  tools.mode = mode;
  tools.sandboxes = sandboxes;
  tools.groups = LimitGroups::find(groupName);
  tools.filter = makeFilter(
      {.denyIpc = mode == Mode::kRestricted, .shieldFirstProcess = mode == Mode::kUnprivileged});
  // Entering a sandbox changes the credentials of a process that still shares the keeper's memory;
  // with this setting the kernel would open that memory to the sandbox's other processes.
  if (const auto dumpable = sys::readFile("/proc/sys/fs/suid_dumpable");
      dumpable && dumpable->starts_with('1')) {
    return fail(Code::kConflict,
                "fs.suid_dumpable is 1, which lets sandboxes read their keepers; set it to 0 or 2");
  }
  if (mode != Mode::kRestricted) {
    CAY_ASSIGN(tools.stage, Stage::enter(mode, sandboxes, users));
  } else if (::geteuid() != 0) {
    return fail(Code::kExhausted, "the restricted mode needs root, to give each sandbox a user id");
  } else if (landlockAbi() == 0) {
    return fail(Code::kExhausted,
                "this kernel has no Landlock, the wall around files without namespaces");
  }
  return tools;
}

uint64_t namespacesFor(const Plan& plan) {
  if (plan.mode == Mode::kRestricted) return 0;
  return CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
         (plan.network == Network::kNone ? CLONE_NEWNET : 0);
}

Result<Placed> Tools::place(const Plan& plan) {
  Placed out;
  if (!stage && (!plan.binds.empty() || !plan.devices.empty() || plan.network == Network::kGiven)) {
    return fail(Code::kExhausted,
                "without namespaces nothing can be mounted for a sandbox, and it "
                "can have no network of its own");
  }
  for (const Overlay& overlay : plan.root) {
    auto& places = out.lowers.emplace_back();
    for (const std::string& path : overlay.lowers) {
      CAY_ASSIGN(std::string at, stage->layer(path));
      places.push_back(std::move(at));
    }
  }
  for (const Bind& bind : plan.binds) {
    CAY_ASSIGN(Fd source, stage->source(bind));
    out.binds.push_back(std::move(source));
  }
  for (const std::string& path : plan.devices) {
    CAY_ASSIGN(Fd device, stage->device(path));
    out.devices.push_back(std::move(device));
  }
  return out;
}

Result<Inside> enclose(const Tools& tools, const Enclosing& what) {
  const Plan& plan = what.plan;
  Inside inside;
  inside.mode_ = plan.mode;
  CAY_ASSIGN(inside.group_, tools.groups.open(plan.slot, plan.limits));
  if (plan.mode == Mode::kRestricted) {
    inside.uid_ = plan.firstUid;
    CAY_ASSIGN(inside.files_,
               openFolder(AT_FDCWD, (tools.sandboxes + "/" + plan.id + "/home").c_str()));
    // Without it an ordinary process may not enter a Landlock domain.
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)limitBoundingSet(kNoCapabilities);  // a second lock, where we may turn it
  } else {
    CAY_ASSIGN(inside.userNamespace_, enterOwnRoot({plan, what.placed, what.disk}));
    CAY_ASSIGN(inside.files_, openFolder(AT_FDCWD, "/"));
    if (::sethostname(plan.id.data(), plan.id.size()) != 0) return failSys("sethostname", errno);
    if (!inside.group_.apart) CAY_TRY(sys::unshare(CLONE_NEWCGROUP));
    if (plan.network == Network::kGiven) CAY_TRY(enterNetwork(what.network));
    if (isOwn(plan.network)) CAY_TRY(openLoopback());
    inside.diskLimited_ = what.disk.valid();
  }
  CAY_ASSIGN(const Fd ruleset, makeRuleset(rulesFor(tools, plan, inside.group_, what.logFolder)));
  CAY_TRY(enterDomain(ruleset));

  inside.rlimits_ = {{RLIMIT_CORE, {0, 0}},
                     {RLIMIT_NOFILE, capped(RLIMIT_NOFILE, kOpenFilesSoft, kOpenFilesHard)}};
  if (!tools.groups.hasPids() && plan.limits.pids > 0) {
    inside.rlimits_.push_back(
        {RLIMIT_NPROC, capped(RLIMIT_NPROC, plan.limits.pids, plan.limits.pids)});
  }
  if (!tools.groups.hasMemory() && plan.limits.memoryBytes > 0) {
    // Of each process, and only what it can write to: reserved address space stays free.
    inside.rlimits_.push_back(
        {RLIMIT_DATA, capped(RLIMIT_DATA, plan.limits.memoryBytes, plan.limits.memoryBytes)});
  }
  inside.filter_ = tools.filter.view();
  // Nothing inside may look into the keeper, nor into a command that still shares its memory.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return failSys("PR_SET_DUMPABLE", errno);
  return inside;
}

const char* Inside::enter() const noexcept {
  for (const Fd& entrance : group_.entrances) {
    if (::write(entrance.get(), "0", 1) != 1) return "limit group";
  }
  const bool ownGroups = mode_ != Mode::kRestricted && group_.apart;
  if (ownGroups && ::syscall(SYS_unshare, CLONE_NEWCGROUP) != 0) return "cgroup namespace";
  for (const Rlimit& limit : rlimits_) {
    if (::syscall(SYS_prlimit64, 0, limit.resource, &limit.value, nullptr) != 0) return "rlimit";
  }
  if (userNamespace_.valid() && ::syscall(SYS_setns, userNamespace_.get(), CLONE_NEWUSER) != 0) {
    return "user namespace";
  }
  // Raw calls: the C library's would tell the keeper's threads, of which there are none, through
  // memory that is not ours. An ordinary user's groups cannot be given up.
  if (mode_ != Mode::kUnprivileged && ::syscall(SYS_setgroups, 0, nullptr) != 0) return "groups";
  if (::syscall(SYS_setresgid, uid_, uid_, uid_) != 0) return "group id";
  // Where there is no user namespace, this takes all capabilities away.
  if (::syscall(SYS_setresuid, uid_, uid_, uid_) != 0) return "user id";
  if (userNamespace_.valid() && dropTo(kCommandCapabilities) != 0) return "capabilities";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no_new_privs";
  if (install(filter_) != 0) return "seccomp";
  return nullptr;
}

}  // namespace cay::isolation
