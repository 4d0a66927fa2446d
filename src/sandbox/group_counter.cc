#include "sandbox/oom.h"

#include <fcntl.h>

#include <charconv>
#include <string_view>

#include "sandbox/cgroup_files.h"
#include "sys/io.h"

namespace cay::sandbox {

OomCounter OomCounter::forOwnGroup() {
  OomCounter counter;
  const auto open = [&](const std::optional<std::string>& folder, const char* name) {
    if (!folder || counter.file_.valid()) return;
    counter.file_ = Fd(::open((*folder + name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  open(ownGroupV2(), "/memory.events");
  open(ownGroupV1("memory"), "/memory.oom_control");
  return counter;
}

uint64_t OomCounter::read() const {
  if (!file_.valid()) return 0;
  char text[1024];
  const auto length = sys::preadSome(file_.get(), text, 0);
  if (!length) return 0;
  const std::string_view all(text, *length);
  constexpr std::string_view kName = "\noom_kill ";
  const size_t at = all.find(kName);
  if (at == std::string_view::npos) return 0;
  uint64_t value = 0;
  std::from_chars(all.data() + at + kName.size(), all.data() + all.size(), value);
  return value;
}

}  // namespace cay::sandbox
