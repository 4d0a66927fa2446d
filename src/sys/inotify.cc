#include "sys/inotify.h"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "sys/file.h"

namespace cay::sys {

Result<Fd> inotifyCreate() {
  const int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd == -1) return failSys("inotify_init1", errno);
  return Fd(fd);
}

Result<int> inotifyAdd(int inotify, int target, uint32_t mask) {
  const int watch = ::inotify_add_watch(inotify, fdPath(target).c_str(), mask);
  if (watch == -1) return failSys("inotify_add_watch", errno);
  return watch;
}

void inotifyRemove(int inotify, int watch) {
  (void)::inotify_rm_watch(inotify, watch);
}

Result<std::vector<InotifyEvent>> inotifyRead(int inotify) {
  alignas(inotify_event) char buffer[64 * 1024];
  ssize_t got = ::read(inotify, buffer, sizeof buffer);
  while (got == -1 && errno == EINTR) got = ::read(inotify, buffer, sizeof buffer);
  std::vector<InotifyEvent> events;
  if (got == -1) {
    if (errno == EAGAIN) return events;
    return failSys("read of inotify", errno);
  }
  for (ssize_t at = 0; at < got;) {
    inotify_event event;
    std::memcpy(&event, buffer + at, sizeof event);
    const char* name = buffer + at + sizeof event;
    events.push_back({.watch = event.wd,
                      .mask = event.mask,
                      .cookie = event.cookie,
                      .name = std::string(name, ::strnlen(name, event.len))});
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
  return events;
}

}  // namespace cay::sys
