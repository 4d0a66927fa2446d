#include "sandbox/group_counter.h"

#include <fcntl.h>

#include <charconv>

#include "isolation/cgroup_files.h"
#include "sys/io.h"

namespace cay::sandbox {

GroupCounter GroupCounter::oomKillsOfOwnGroup() {
  Fd file;
  const auto open = [&](const std::optional<std::string>& folder, const char* name) {
    if (!folder || file.valid()) return;
    file = Fd(::open((*folder + name).c_str(), O_RDONLY | O_CLOEXEC));
  };
  open(isolation::ownGroupV2(), "/memory.events");
  open(isolation::ownGroupV1("memory"), "/memory.oom_control");
  return oomKills(std::move(file));
}

uint64_t GroupCounter::read() const {
  if (!file_.valid()) return 0;
  char text[1024];
  const auto length = sys::preadSome(file_.get(), text, 0);
  if (!length) return 0;
  std::string_view rest(text, *length);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.starts_with(name_)) {
      uint64_t value = 0;
      std::from_chars(line.data() + name_.size(), line.data() + line.size(), value);
      return value;
    }
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return 0;
}

}  // namespace cay::sandbox
