// Small things that routes share.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "host/call.h"
#include "net/task.h"

namespace cay::host {

// The largest JSON body that is read into memory.
inline constexpr size_t kMaxJsonBytes = 32 << 20;

// "/a/b/c" as a, b, c; a trailing slash adds nothing.
std::vector<std::string_view> segments(std::string_view path);

// True if `path` is `route` or lies below it.
bool isBelow(std::string_view path, std::string_view route);

// kMethod (405) unless the request's method is one of these; the answer lists them.
Result<> allow(Call& call, std::initializer_list<std::string_view> methods);

std::unexpected<Error> noSuchRoute(const Call& call);

// 204 with the methods that there are.
net::Task<Result<>> answerOptions(Call& call);

}  // namespace cay::host
