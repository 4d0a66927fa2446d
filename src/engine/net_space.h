// Network namespaces, for cay-net, which acts in many and stays in its own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/fd.h"

namespace cay::engine {

// The caller's.
Result<Fd> ownNetSpace();
// What it is called everywhere: its inode.
Result<std::string> netSpaceName(const Fd& space);

// Runs it to its end in a thread that has gone into this namespace, or, if there is none, into a
// new one. Nobody has to come back, which the root of a user namespace could not: the machine's own
// network is closed to it.
Result<> runInNetSpace(const Fd* space, const std::function<void()>& act);

// What `act` gives, which is a Result, or why it could not be run there.
template <typename Act>
std::invoke_result_t<Act> inNetSpace(const Fd& space, Act act) {
  std::optional<std::invoke_result_t<Act>> out;
  CAY_TRY(runInNetSpace(&space, [&] { out.emplace(act()); }));
  return *std::move(out);
}
template <typename Act>
std::invoke_result_t<Act> inNewNetSpace(Act act) {
  std::optional<std::invoke_result_t<Act>> out;
  CAY_TRY(runInNetSpace(nullptr, [&] { out.emplace(act()); }));
  return *std::move(out);
}

// Of the namespace that the caller is in: "ipv4/conf/all/rp_filter". A setting that this kernel
// does not have is kNotFound.
Result<> setNetSetting(const std::string& name, std::string_view value);
Result<std::string> netSetting(const std::string& name);
// The same, where a kernel without it needs it not.
Result<> setNetSettingIfThere(const std::string& name, std::string_view value);

}  // namespace cay::engine
