// Landlock: a domain that a sandbox's keeper enters once and that all its commands inherit, so
// that abstract sockets and signals work between them and reach nobody else.
// Rights that the running kernel does not know are left out; the probe tells what that means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::isolation {

// The version of Landlock that the kernel speaks; 0: none.
int landlockAbi();

enum class Access : uint8_t {
  kRead,    // read, list and run
  kDevice,  // read, write and control what is there; make nothing
  kAll,
};

struct PathRule {
  std::string path;  // a file, or a folder with all that is below it; no right if it is not there
  Access access = Access::kRead;
};

struct DomainRules {
  bool denyTcpBind = false;
  // All that can be opened, made or removed. nullopt: the sandbox has a root of its own instead.
  std::optional<std::vector<PathRule>> files = std::nullopt;
};

// What commands need of a host whose root they share: programs and settings to read, a few
// devices, and the whole of their home. /run, /tmp, /var and /dev/shm are not in it: other people's
// sockets and files are there.
std::vector<PathRule> sharedRootFiles(std::string home);

// Not valid if the kernel can enforce nothing of `rules`.
Result<Fd> makeRuleset(const DomainRules& rules);
// For good, for the calling thread and all that it starts. It must have no_new_privs set or
// CAP_SYS_ADMIN. Nothing happens if `ruleset` is not valid.
Result<> enterDomain(const Fd& ruleset);

}  // namespace cay::isolation
