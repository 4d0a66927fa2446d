#include "isolation/ordinary_user.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/text.h"
#include "isolation/capabilities.h"
#include "sys/io.h"
#include "sys/namespaces.h"

namespace cay::isolation {
namespace {

// What 0 is outside, if it is the only id that there is.
std::optional<uint32_t> behindZero(const char* map) {
  const auto text = sys::readFile(map);
  const auto fields = words(text ? *text : std::string_view());  // inside, outside, count
  if (fields.size() != 3 || fields[0] != "0" || fields[2] != "1") return std::nullopt;
  const auto outside = parseUint(fields[1]);
  return outside ? std::optional(static_cast<uint32_t>(*outside)) : std::nullopt;
}

}  // namespace

Result<> becomeOrdinaryUser() {
  const auto uid = behindZero("/proc/self/uid_map");
  const auto gid = behindZero("/proc/self/gid_map");
  if (::geteuid() != 0 || !uid || !gid || *uid == 0) return {};
  CAY_TRY(sys::enterNewUserNamespace(*uid, *gid));
  if (dropTo(kNoCapabilities) != 0) return failSys("giving up capabilities", errno);
  return {};
}

}  // namespace cay::isolation
