// slirp4netns at the router: connections of jobs become connections of a process of the machine.
// That process could reach every address of the machine, so the router keeps packets for them back.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/text.h"
#include "engine/net_space.h"
#include "engine/tool.h"
#include "engine/uplink.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr char kWay[] = "tap0";
constexpr char kNetwork[] = "--cidr=100.127.255.0/24";  // among those that jobs cannot reach
constexpr char kTun[] = "/dev/net/tun";
constexpr int kReadyMs = 5'000;
constexpr int kUpkeepMs = 1'000;

class SlirpUplink final : public Uplink {
 public:
  SlirpUplink(const Fd& router, sys::Netlink machine)
      : router_(router), machine_(std::move(machine)) {}
  ~SlirpUplink() override { stop(); }

  [[nodiscard]] std::string way() const override { return kWay; }
  [[nodiscard]] std::string name() const override { return "slirp4netns"; }
  [[nodiscard]] std::vector<sys::Ipv4> closed() const override { return closed_; }
  Result<> raise() override;
  [[nodiscard]] int upkeepMs() const override { return kUpkeepMs; }
  Result<bool> upkeep() override;
  Result<> takeDown() override {
    stop();
    return {};
  }
  // True if the machine has got or lost an address.
  Result<bool> lookAtMachine();

 private:
  void stop();

  const Fd& router_;
  sys::Netlink machine_;
  std::vector<sys::Ipv4> closed_;
  pid_t pid_ = -1;
  Fd life_;  // it ends when this is closed, be it that we are killed
};

Result<bool> SlirpUplink::lookAtMachine() {
  CAY_ASSIGN(std::vector<sys::Ipv4> now, machine_.addresses());
  const bool changed = now != closed_;
  closed_ = std::move(now);
  return changed;
}

Result<> SlirpUplink::raise() {
  if (::access(kTun, R_OK | W_OK) != 0) {
    return failSys(std::string("slirp4netns needs ") + kTun, errno);
  }
  CAY_ASSIGN(sys::Pipe ready, sys::makePipe());
  CAY_ASSIGN(sys::Pipe life, sys::makePipe());
  const int descriptors[] = {ready.write.get(), life.read.get()};
  const std::string router =
      "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(router_.get());
  CAY_ASSIGN(pid_, startTool("slirp4netns",
                             {"--configure", "--ready-fd=3", "--exit-fd=4", "--mtu=1500", kNetwork,
                              "--disable-host-loopback", "--disable-dns", "--enable-sandbox",
                              "--enable-seccomp", "--netns-type=path", router, kWay},
                             descriptors));
  life_ = std::move(life.write);
  ready.write.reset();
  pollfd watched{.fd = ready.read.get(), .events = POLLIN, .revents = 0};
  char byte = 0;
  if (::poll(&watched, 1, kReadyMs) <= 0 || ::read(ready.read.get(), &byte, 1) != 1) {
    stop();
    return fail(Code::kUnreachable, "slirp4netns does not start");
  }
  return {};
}

Result<bool> SlirpUplink::upkeep() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  if (pid_ < 0) CAY_TRY(raise());
  return lookAtMachine();
}

void SlirpUplink::stop() {
  life_.reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace

Result<std::unique_ptr<Uplink>> slirpUplink(const Fd& router) {
  CAY_ASSIGN(sys::Netlink machine, sys::Netlink::open());
  auto uplink = std::make_unique<SlirpUplink>(router, std::move(machine));
  CAY_TRY(uplink->lookAtMachine());
  return uplink;
}

}  // namespace cay::engine
