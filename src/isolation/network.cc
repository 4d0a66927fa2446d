#include "isolation/network.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"
#include "sys/io.h"

namespace cay::isolation {

Result<> openLoopback() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return failSys("socket", errno);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return failSys("loopback", errno);
  // The sandbox's root is nobody to this namespace, so ports below 1024 need to be opened for it.
  const Fd file(::open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return failSys("ip_unprivileged_port_start", errno);
  return sys::writeAll(file.get(), "0");
}

}  // namespace cay::isolation
