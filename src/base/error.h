// How a failure travels: a Result holds a value or an Error that says what went wrong in words a
// user can act on. Functions either log an Error or return it, never both.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace cay {

// The closed list of kinds of failure. Each has one HTTP status (net/status.h).
enum class Code {
  kInvalid,        // the request is wrong in itself
  kDenied,         // no or wrong credentials
  kNotFound,       // the named thing does not exist
  kMethod,         // the route exists, but not for this method
  kConflict,       // the thing exists and is of the wrong kind or state
  kGone,           // it existed and is over
  kTooLarge,       // beyond a stated limit
  kUnprocessable,  // well formed, but contradicts an earlier request
  kUnreachable,    // a server behind us does not answer
  kExhausted,      // descriptors, memory, disk or slots ran out
  kTimeout,        // the other side took too long
  kClosed,         // the other side went away
  kInternal,       // everything that should not happen
};
inline constexpr Code kLastCode = Code::kInternal;

struct Error {
  Code code = Code::kInternal;
  int sys = 0;  // errno where a system call failed, else 0
  std::string message;

  // Puts what was being done in front: "write '/etc/x': " + message.
  Error&& wrap(std::string_view context) && {
    message.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

template <typename T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected<Error>(Error{code, 0, std::move(message)});
}

// An Error for a failed system call; `what` names the call and its subject.
Error sysError(std::string_view what, int err);
inline std::unexpected<Error> failSys(std::string_view what, int err) {
  return std::unexpected<Error>(sysError(what, err));
}

// The sentence of an errno, e.g. "No such file or directory".
std::string errnoText(int err);

}  // namespace cay

// Returns early with the error of `expr`; CAY_CO_TRY is the same for coroutines.
#define CAY_TRY(expr)                                                  \
  do {                                                                 \
    if (auto cay_r_ = (expr); !cay_r_) {                               \
      return std::unexpected<::cay::Error>(std::move(cay_r_).error()); \
    }                                                                  \
  } while (0)
#define CAY_CO_TRY(expr)                                                  \
  do {                                                                    \
    if (auto cay_r_ = (expr); !cay_r_) {                                  \
      co_return std::unexpected<::cay::Error>(std::move(cay_r_).error()); \
    }                                                                     \
  } while (0)
#define CAY_CONCAT_(a, b) a##b
#define CAY_CONCAT(a, b) CAY_CONCAT_(a, b)
#define CAY_ASSIGN_(tmp, lhs, expr, ret)                       \
  auto tmp = (expr);                                           \
  if (!tmp) {                                                  \
    ret std::unexpected<::cay::Error>(std::move(tmp).error()); \
  }                                                            \
  lhs = *std::move(tmp)
// CAY_ASSIGN(auto x, expr): x = value of expr, or return early with its error.
#define CAY_ASSIGN(lhs, expr) CAY_ASSIGN_(CAY_CONCAT(cay_a_, __LINE__), lhs, expr, return)
#define CAY_CO_ASSIGN(lhs, expr) CAY_ASSIGN_(CAY_CONCAT(cay_a_, __LINE__), lhs, expr, co_return)
