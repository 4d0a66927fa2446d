// A pair of links between the machine and the router, and address translation in the machine.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "engine/address_plan.h"
#include "engine/net_space.h"
#include "engine/router_rules.h"
#include "engine/tool.h"
#include "engine/uplink.h"
#include "engine/uplink_lease.h"

namespace cay::engine {
namespace {

constexpr char kWay[] = "up0";
// A new link may take a while to carry anything, and a lost packet is sent again after a second.
constexpr int kProbes = 5;
constexpr int kProbeMs = 700;
constexpr uint16_t kDnsPort = 53;
// Where there is no resolver to ask: an address of documentation, since only our own counter is
// looked at.
constexpr sys::Ipv4 kNowhere{0xC0000201};

// True if anybody answers, be it with a refusal. In the namespace of the caller.
Result<bool> answers(sys::Ipv4 address) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return failSys("socket", errno);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kDnsPort);
  to.sin_addr.s_addr = htonl(address.number);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd watched{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&watched, 1, kProbeMs) <= 0) return false;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 || error == ECONNREFUSED;
}

Result<bool> answersAtLast(sys::Ipv4 address) {
  for (int i = 0; i < kProbes; ++i) {
    CAY_ASSIGN(const bool answered, answers(address));
    if (answered) return true;
  }
  return false;
}

// Names go into rules and paths as they are.
bool isPlain(const std::string& link) {
  return std::ranges::all_of(link, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '@';
  });
}

class KernelUplink final : public Uplink {
 public:
  KernelUplink(const Fd& router, const UplinkPlan& plan, UplinkLease lease)
      : router_(router), plan_(plan), lease_(std::move(lease)) {}

  [[nodiscard]] std::string way() const override { return kWay; }
  [[nodiscard]] std::string name() const override { return "kernel nat"; }
  [[nodiscard]] std::vector<sys::Ipv4> closed() const override { return {}; }
  Result<> raise() override;
  Result<> takeDown() override { return lease_.giveBack(); }

 private:
  Result<> makeLink(sys::Netlink& machine);
  Result<> openMachine(sys::Netlink& machine);
  Result<> probe();
  [[nodiscard]] Result<bool> hasLeft() const;

  const Fd& router_;
  const UplinkPlan& plan_;
  UplinkLease lease_;
};

Result<> KernelUplink::raise() {
  CAY_ASSIGN(sys::Netlink machine, sys::Netlink::open());
  CAY_TRY(makeLink(machine));
  CAY_TRY(openMachine(machine));
  return probe();
}

Result<> KernelUplink::makeLink(sys::Netlink& machine) {
  const std::string link = machineLink(lease_.number());
  const LinkAddresses addresses = uplinkAddresses(lease_.number());
  CAY_TRY(machine.makeVeth(link, kWay, router_));
  CAY_TRY(setNetSettingIfThere("ipv6/conf/" + link + "/disable_ipv6", "1"));
  const std::string settings = "ipv4/conf/" + link;
  CAY_TRY(setNetSetting(settings + "/rp_filter", "1"));
  CAY_TRY(setNetSetting(settings + "/accept_redirects", "0"));
  CAY_TRY(setNetSetting(settings + "/send_redirects", "0"));
  CAY_TRY(machine.addAddress(link, addresses.near, kUplinkPrefix));

  return inNetSpace(router_, [&]() -> Result<> {
    CAY_ASSIGN(sys::Netlink router, sys::Netlink::open());
    CAY_TRY(router.addAddress(kWay, addresses.far, kUplinkPrefix));
    return router.setUp(kWay);
  });
}

Result<> KernelUplink::openMachine(sys::Netlink& machine) {
  MachineShape shape{.uplink = lease_.number(), .ways = {}, .opened = {}, .resolvers = {}};
  CAY_ASSIGN(shape.ways, machine.defaultRouteLinks());
  if (shape.ways.empty()) return fail(Code::kUnreachable, "this machine has no default route");
  if (!std::ranges::all_of(shape.ways, isPlain)) {
    return fail(Code::kInvalid, "the link of the default route has an odd name");
  }
  CAY_ASSIGN(shape.opened, lease_.notForwarding(shape.ways));
  CAY_ASSIGN(const std::vector<sys::Ipv4> own, machine.addresses());
  for (const sys::Ipv4 resolver : plan_.resolvers) {
    if (std::ranges::find(own, resolver) != own.end()) shape.resolvers.push_back(resolver);
  }
  CAY_TRY(runTool("nft", {"-f", "-"}, machineRules(shape)));
  const std::string link = machineLink(lease_.number());
  CAY_TRY(setNetSetting("ipv4/conf/" + link + "/forwarding", "1"));
  CAY_TRY(lease_.openForwarding(shape.ways));
  CAY_TRY(machine.setUp(link));

  return inNetSpace(router_, [this]() -> Result<> {
    CAY_ASSIGN(sys::Netlink router, sys::Netlink::open());
    CAY_TRY(router.awaitCarrying(kWay));
    return router.addDefaultRoute(uplinkAddresses(lease_.number()).near);
  });
}

// Other rules on this machine may drop what ours let pass.
Result<> KernelUplink::probe() {
  const sys::Ipv4 target = plan_.resolvers.empty() ? kNowhere : plan_.resolvers.front();
  CAY_ASSIGN(const bool answered, inNetSpace(router_, [&] { return answersAtLast(target); }));
  if (answered) return {};
  CAY_ASSIGN(const bool left, hasLeft());
  if (!left) {
    return fail(Code::kUnreachable,
                "a firewall of this machine does not let its networks through (a forward policy of "
                "drop?)");
  }
  if (plan_.resolvers.empty()) return {};
  CAY_ASSIGN(const bool answersMachine, answers(target));
  if (answersMachine) {
    return fail(Code::kUnreachable, target.text() + " answers this machine, but not its networks");
  }
  return {};  // nobody answers there: that is not ours to mend
}

Result<bool> KernelUplink::hasLeft() const {
  CAY_ASSIGN(const std::string text, runTool("nft", {"list", "counter", "inet",
                                                     machineTable(lease_.number()), kLeftCounter}));
  constexpr std::string_view kPackets = "packets ";
  const size_t at = text.find(kPackets);
  if (at == std::string::npos) return fail(Code::kInternal, "nft lists no counter");
  return !std::string_view(text).substr(at + kPackets.size()).starts_with("0 ");
}

}  // namespace

Result<std::unique_ptr<Uplink>> kernelUplink(const Fd& router, const UplinkPlan& plan) {
  CAY_ASSIGN(UplinkLease lease, UplinkLease::take(plan.leases));
  return std::make_unique<KernelUplink>(router, plan, std::move(lease));
}

}  // namespace cay::engine
