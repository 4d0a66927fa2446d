#include "isolation/capabilities.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cay::isolation {
namespace {

int setCapabilities(CapabilitySet kept) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct halves[2] = {};
  for (int half = 0; half < 2; ++half) {
    halves[half].effective = halves[half].permitted = static_cast<uint32_t>(kept >> (32 * half));
  }
  return static_cast<int>(::syscall(SYS_capset, &header, halves));
}

}  // namespace

int limitBoundingSet(CapabilitySet kept) {
  for (unsigned number = 0; number < 64; ++number) {
    if ((kept & capability(number)) != 0 || ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0)
      continue;
    if (errno == EINVAL) return 0;  // the kernel knows no more
    if (::prctl(PR_CAPBSET_READ, number, 0, 0, 0) != 0) {
      errno = EPERM;
      return -1;
    }
  }
  return 0;
}

int dropTo(CapabilitySet kept) {
  if (limitBoundingSet(kept) != 0 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return -1;
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return -1;
  return setCapabilities(kept);
}

}  // namespace cay::isolation
