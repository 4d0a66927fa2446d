#include "host/route.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace cay::host {

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    if (path.front() == '/') path.remove_prefix(1);
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0) out.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return out;
}

bool isBelow(std::string_view path, std::string_view route) {
  return path.starts_with(route) && (path.size() == route.size() || path[route.size()] == '/');
}

Result<> allow(Call& call, std::initializer_list<std::string_view> methods) {
  if (std::ranges::find(methods, call.head.method) != methods.end()) return {};
  for (const std::string_view method : methods) {
    call.allowed.append(call.allowed.empty() ? "" : ", ").append(method);
  }
  return fail(Code::kMethod,
              quoted(call.head.method) + " is not a method of this route: " + call.allowed);
}

std::unexpected<Error> noSuchRoute(const Call& call) {
  return fail(Code::kNotFound, "no such route: " + call.head.method + " " + quoted(call.head.path));
}

net::Task<Result<>> answerOptions(Call& call) {
  net::ResponseHead options{.status = 204, .fields = {}};
  options.fields.add("Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS");
  co_return co_await net::send(call.response, std::move(options), {});
}

}  // namespace cay::host
