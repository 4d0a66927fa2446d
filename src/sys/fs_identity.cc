#include "sys/fs_identity.h"

#include <grp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace cay::sys {
namespace {

// setfsuid and setfsgid report no errors: they return the former value, so a second call with an id
// that cannot be set tells whether the first one worked.
bool setFsUid(uid_t uid) {
  ::syscall(SYS_setfsuid, uid);
  return static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == uid;
}

bool setFsGid(gid_t gid) {
  ::syscall(SYS_setfsgid, gid);
  return static_cast<gid_t>(::syscall(SYS_setfsgid, -1)) == gid;
}

// These take the file system's ids with them. The real and saved ids stay, so that there is a way
// back and nobody else may signal or trace the thread.
bool setUid(const Identity& to) {
  return to.effective ? ::syscall(SYS_setresuid, -1, to.uid, -1) == 0 : setFsUid(to.uid);
}

bool setGid(const Identity& to) {
  return to.effective ? ::syscall(SYS_setresgid, -1, to.gid, -1) == 0 : setFsGid(to.gid);
}

Identity current(bool effective) {
  return {.uid = static_cast<uid_t>(::syscall(SYS_setfsuid, -1)),
          .gid = static_cast<gid_t>(::syscall(SYS_setfsgid, -1)),
          .effective = effective};
}

bool setGroups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

Result<std::vector<gid_t>> currentGroups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  if (count < 0) return failSys("getgroups", errno);
  groups.resize(static_cast<size_t>(count));
  return groups;
}

}  // namespace

Result<ActingAs> ActingAs::begin(std::optional<Identity> identity) {
  ActingAs acting;
  if (!identity) return acting;
  const Identity now = current(identity->effective);
  if (*identity == now) return acting;
  CAY_ASSIGN(acting.groups_, currentGroups());
  if (!setGroups({})) return failSys("setgroups", errno);
  acting.before_ = now;  // from here on the destructor undoes what has been done
  // The uid last: giving it up takes away the right to change the others.
  if (!setGid(*identity) || !setUid(*identity)) {
    return fail(Code::kInternal, "cannot act as uid " + std::to_string(identity->uid));
  }
  return acting;
}

ActingAs::ActingAs(ActingAs&& other) noexcept
    : before_(std::exchange(other.before_, std::nullopt)), groups_(std::move(other.groups_)) {}

ActingAs::~ActingAs() {
  if (!before_) return;
  // A thread that stays somebody else would serve the next sandbox under a wrong name.
  if (!setUid(*before_) || !setGid(*before_) || !setGroups(groups_)) std::abort();
}

}  // namespace cay::sys
