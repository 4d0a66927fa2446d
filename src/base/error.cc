#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace cay {
namespace {

Code codeOf(int err) {
  switch (err) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
      return Code::kConflict;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
    case EXDEV:
    case EACCES:
    case EPERM:
    case EROFS:
    case E2BIG:
    case EFBIG:
    case ENXIO:
    case ENODEV:
    case ENOEXEC:
      return Code::kInvalid;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
      return Code::kExhausted;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Code::kUnreachable;
    case ETIMEDOUT:
      return Code::kTimeout;
    case EPIPE:
    case ECONNRESET:
      return Code::kClosed;
    default:
      return Code::kInternal;
  }
}

}  // namespace

std::string errnoText(int err) {
  // Safe in any thread: both glibc (2.32 and newer) and musl give text that no other call changes.
  return std::strerror(err);
}

Error sysError(std::string_view what, int err) {
  std::string message(what);
  message.append(": ").append(errnoText(err));
  return Error{codeOf(err), err, std::move(message)};
}

}  // namespace cay
