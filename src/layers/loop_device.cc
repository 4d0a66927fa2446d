#include "layers/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <string>

#include "sys/file.h"

namespace cay::layers {
namespace {

constexpr int kAttempts = 64;  // others may take the free one first
constexpr unsigned kLoopMajor = 7;
constexpr uint32_t kBlockBytes = 4096;  // of the file systems we put there

Result<Fd> openDevice(const Fd& devices, int number) {
  const std::string name = "loop" + std::to_string(number);
  auto device = sys::openAt(devices.get(), name.c_str(), O_RDWR);
  if (device || device.error().sys != ENOENT) return device;
  // In a container /dev holds what was there when it began.
  const dev_t node = makedev(kLoopMajor, static_cast<unsigned>(number));
  (void)::mknodat(devices.get(), name.c_str(), S_IFBLK | 0600, node);
  return sys::openAt(devices.get(), name.c_str(), O_RDWR);
}

}  // namespace

Result<Fd> attachLoop(const Fd& file, const Fd& devices) {
  CAY_ASSIGN(const Fd control, sys::openAt(devices.get(), "loop-control", O_RDWR));
  loop_config config{};
  config.fd = static_cast<uint32_t>(file.get());
  config.block_size = kBlockBytes;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  for (int attempt = 1;; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number == -1) return failSys("look for a free loop device", errno);
    CAY_ASSIGN(Fd device, openDevice(devices, number));
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY || attempt == kAttempts) return failSys("set up a loop device", errno);
  }
}

Result<Fd> attachLoop(const Fd& file) {
  CAY_ASSIGN(const Fd devices, sys::openAt(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY));
  return attachLoop(file, devices);
}

}  // namespace cay::layers
