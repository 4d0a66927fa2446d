#include "isolation/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sys/uapi.h"

namespace cay::isolation {
namespace {

constexpr int kAbiRefer = 2;
constexpr int kAbiTruncate = 3;
constexpr int kAbiNetwork = 4;
constexpr int kAbiIoctl = 5;
constexpr int kAbiScopes = 6;

constexpr uint64_t kFirstRights = LANDLOCK_ACCESS_FS_REFER - 1;  // all of ABI 1
constexpr uint64_t kReadRights =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kDeviceRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | sys::kLandlockFsTruncate |
                                   sys::kLandlockFsIoctlDev;
// What a rule about something that is not a folder may say.
constexpr uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                 LANDLOCK_ACCESS_FS_WRITE_FILE | sys::kLandlockFsTruncate |
                                 sys::kLandlockFsIoctlDev;

uint64_t allRights(int abi) {
  uint64_t rights = kFirstRights;
  if (abi >= kAbiRefer) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= kAbiTruncate) rights |= sys::kLandlockFsTruncate;
  if (abi >= kAbiIoctl) rights |= sys::kLandlockFsIoctlDev;
  return rights;
}

uint64_t rightsOf(Access access) {
  switch (access) {
    case Access::kRead:
      return kReadRights;
    case Access::kDevice:
      return kDeviceRights;
    case Access::kAll:
      break;
  }
  return ~uint64_t{0};
}

Result<> addRule(const Fd& ruleset, const PathRule& rule, uint64_t handled) {
  const Fd target(::open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  if (!target.valid()) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return failSys("open '" + rule.path + "'", errno);
  }
  struct stat info{};
  if (::fstat(target.get(), &info) != 0) return failSys("fstat '" + rule.path + "'", errno);
  uint64_t rights = rightsOf(rule.access) & handled;
  if (!S_ISDIR(info.st_mode)) rights &= kFileRights;
  const landlock_path_beneath_attr attr{.allowed_access = rights, .parent_fd = target.get()};
  if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &attr, 0) != 0) {
    return failSys("landlock_add_rule '" + rule.path + "'", errno);
  }
  return {};
}

}  // namespace

int landlockAbi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  return static_cast<int>(std::max(abi, 0L));
}

std::vector<PathRule> sharedRootFiles(std::string home) {
  std::vector<PathRule> rules;
  for (const char* path :
       {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc",
        // Where it is a link into /run: name resolution would be lost.
        "/etc/resolv.conf",
        // Numbers of processors and memory nodes, and what allocators ask about huge pages.
        "/sys/devices/system", "/sys/kernel/mm"}) {
    rules.push_back({path, Access::kRead});
  }
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                           "/dev/tty", "/dev/ptmx", "/dev/pts"}) {
    rules.push_back({path, Access::kDevice});
  }
  rules.push_back({std::move(home), Access::kAll});
  return rules;
}

Result<Fd> makeRuleset(const DomainRules& rules) {
  const int abi = landlockAbi();
  sys::LandlockRulesetAttr attr;
  if (rules.files && abi > 0) attr.handledAccessFs = allRights(abi);
  if (rules.denyTcpBind && abi >= kAbiNetwork) attr.handledAccessNet = sys::kLandlockNetBindTcp;
  if (abi >= kAbiScopes) attr.scoped = sys::kLandlockScopeAbstractUnix | sys::kLandlockScopeSignal;
  if ((attr.handledAccessFs | attr.handledAccessNet | attr.scoped) == 0) return Fd();

  const long made = ::syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
  if (made < 0) return failSys("landlock_create_ruleset", errno);
  Fd ruleset(static_cast<int>(made));
  if (rules.files) {
    for (const PathRule& rule : *rules.files) {
      CAY_TRY(addRule(ruleset, rule, attr.handledAccessFs));
    }
  }
  return ruleset;
}

Result<> enterDomain(const Fd& ruleset) {
  if (!ruleset.valid()) return {};
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    return failSys("landlock_restrict_self", errno);
  }
  return {};
}

}  // namespace cay::isolation
