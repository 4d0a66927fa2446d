// JSON bodies of requests: any bytes.
//
// Holds: what the parser accepts is written as ASCII that parses back to the same value; what is
// refused is refused as invalid, with words; an accepted command can be handed to execve as it is.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "base/json.h"
#include "host/exec_request.h"

namespace {

namespace json = cay::json;
using cay::sandbox::Kind;

void require(bool holds) {
  if (!holds) std::abort();
}

template <typename T>
void requireRefusal(const cay::Result<T>& result) {
  require(result.error().code == cay::Code::kInvalid && !result.error().message.empty());
}

// Numbers with a fraction are read to within a few units of the last digit, not exactly.
bool same(const json::Value& a, const json::Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_double()) {
    const double x = a.get_double();
    const double y = b.get_double();
    return x == y || std::abs(x - y) <= 1e-14 * std::abs(x);
  }
  if (a.is_array()) {
    return std::ranges::equal(a.get_array(), b.get_array(), same);
  }
  if (a.is_object()) {
    return std::ranges::equal(a.get_object(), b.get_object(), [](const auto& x, const auto& y) {
      return x.key() == y.key() && same(x.value(), y.value());
    });
  }
  return a == b;
}

void checkRoundTrip(std::string_view text) {
  const auto value = json::parse(text);
  if (!value) return requireRefusal(value);
  const std::string written = json::serialize(*value);
  require(std::ranges::all_of(written, [](char c) { return c >= 0x20 && c < 0x7F; }));
  const auto back = json::parse(written);
  require(back.has_value() && same(*value, *back));
}

bool isArgument(const std::string& text) {
  return !text.contains('\0');
}

void checkExec(std::string_view body, Kind kind, std::string_view key) {
  const cay::host::ExecDefaults defaults{.env = {"PATH=/bin", "HOME=/root"}, .cwd = "/root"};
  const auto request = cay::host::parseExecRequest(body, kind, key, defaults);
  if (!request) return requireRefusal(request);
  const cay::sandbox::StartRequest& start = request->start;
  const cay::sandbox::ExecSpec& spec = start.spec;
  require(!spec.argv.empty() && !spec.argv.front().empty());
  require(std::ranges::all_of(spec.argv, isArgument));
  require(spec.cwd.starts_with('/') && isArgument(spec.cwd) && isArgument(start.tag));
  require(spec.timeoutMs >= 0);
  std::set<std::string> names;
  for (const std::string& entry : spec.env) {
    const size_t equals = entry.find('=');
    require(equals != 0 && equals != std::string::npos && isArgument(entry));
    require(names.insert(entry.substr(0, equals)).second);
  }
  require(start.key == key && start.fingerprint.empty() == key.empty());
  require(kind == Kind::kExec || json::parse(start.cmd).has_value());
}

void checkSignal(std::string_view body) {
  const auto number = cay::host::parseSignalRequest(body);
  if (!number) return requireRefusal(number);
  require(*number >= 1 && *number < NSIG);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  checkRoundTrip(body);
  checkExec(body, Kind::kExec, "");
  checkExec(body, Kind::kProcess, "key");
  checkSignal(body);
  return 0;
}
