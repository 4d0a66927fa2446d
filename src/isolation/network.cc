#include "isolation/network.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "sys/file.h"
#include "sys/io.h"
#include "sys/namespaces.h"

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

Result<> enterNetwork(const Fd& network) {
  if (!network.valid()) return fail(Code::kInternal, "no network was given");
  CAY_ASSIGN(const sys::Stat given, sys::statFd(network.get()));
  CAY_ASSIGN(const sys::Stat own, sys::statAt(AT_FDCWD, "/proc/self/ns/net", 0));
  if (given.st_dev == own.st_dev && given.st_ino == own.st_ino) {
    return fail(Code::kConflict, "the network that was given is the host's own");
  }
  return sys::enter(network, CLONE_NEWNET);
}

}  // namespace cay::isolation
