// Network namespaces, for the one process that goes in and out of them. It has a single thread and
// lives in the machine's own.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace cay::engine {

// The caller's.
Result<Fd> ownNetSpace();
// What it is called everywhere: its inode.
Result<std::string> netSpaceName(const Fd& space);

// While it lives, the process is in another namespace. Going back cannot fail: the process ends
// rather than go on in the wrong place.
class Inside {
 public:
  // In one that is there.
  static Result<Inside> enter(const Fd& home, const Fd& space);
  // In a new one.
  static Result<Inside> enterNew(const Fd& home);

  Inside(Inside&& other) noexcept : home_(std::exchange(other.home_, nullptr)) {}
  Inside& operator=(Inside&&) = delete;
  ~Inside();

 private:
  explicit Inside(const Fd& home) : home_(&home) {}
  const Fd* home_;
};

// Of the namespace that the caller is in: "ipv4/conf/all/rp_filter". A setting that this kernel
// does not have is kNotFound.
Result<> setNetSetting(const std::string& name, std::string_view value);
Result<std::string> netSetting(const std::string& name);
// The same, where a kernel without it needs it not.
Result<> setNetSettingIfThere(const std::string& name, std::string_view value);

}  // namespace cay::engine
