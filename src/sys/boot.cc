#include "sys/boot.h"

#include "base/text.h"
#include "sys/io.h"

namespace cay::sys {

Result<std::string> bootId() {
  CAY_ASSIGN(const std::string id, readFile("/proc/sys/kernel/random/boot_id"));
  const auto parts = words(id);
  if (parts.size() != 1) return fail(Code::kInternal, "the kernel's boot_id is not one word");
  return std::string(parts.front());
}

}  // namespace cay::sys
