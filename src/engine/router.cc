#include "engine/router.h"

#include "base/text.h"
#include "engine/net_space.h"
#include "engine/router_rules.h"
#include "engine/tool.h"

namespace cay::engine {
namespace {

constexpr uint32_t kMostOfOne = 2'048;
constexpr uint32_t kUsualConntrackMax = 65'536;

// Every connection of a job is a row in the machine's own table too. Half of it stays for others.
uint32_t mostConnections() {
  const auto text = netSetting("netfilter/nf_conntrack_max");
  const auto most = text ? parseUint(*text) : std::nullopt;
  if (!most || *most < 2 || *most > UINT32_MAX) return kUsualConntrackMax / 2;
  return static_cast<uint32_t>(*most / 2);
}

}  // namespace

Result<std::unique_ptr<Router>> Router::make(Settings settings) {
  std::unique_ptr<Router> router(new Router(std::move(settings)));
  const Outbound wanted = router->settings_.outbound;
  CAY_TRY(router->makeSpace());
  std::string why = "as configured";
  if (wanted == Outbound::kAuto || wanted == Outbound::kKernel) {
    auto up = router->tryKernel();
    if (up) return router;
    if (wanted == Outbound::kKernel) return std::unexpected(std::move(up).error());
    why = up.error().message;
  }
  if (wanted == Outbound::kAuto || wanted == Outbound::kSlirp) {
    auto up = router->tryUplink(slirpUplink(router->space_));
    if (up) {
      if (wanted == Outbound::kAuto) router->name_ += " (no kernel nat: " + why + ")";
      return router;
    }
    if (wanted == Outbound::kSlirp) return std::unexpected(std::move(up).error());
    why += "; " + up.error().message;
  }
  // Groups need no way out, but they do need rules.
  if (const auto ruled = router->setRules(nullptr); !ruled) why += "; " + ruled.error().message;
  router->name_ = "loopback only: " + why;
  return router;
}

Result<> Router::makeSpace() {
  return inNewNetSpace([this] { return furnishSpace(); });
}

Result<> Router::furnishSpace() {
  CAY_ASSIGN(space_, ownNetSpace());
  CAY_ASSIGN(sys::Netlink netlink, sys::Netlink::open());
  netlink_ = std::make_unique<sys::Netlink>(std::move(netlink));
  for (const std::string scope : {"all", "default"}) {
    CAY_TRY(setNetSettingIfThere("ipv6/conf/" + scope + "/disable_ipv6", "1"));
    const std::string settings = "ipv4/conf/" + scope;
    // A source address counts only on the link that leads to it.
    CAY_TRY(setNetSetting(settings + "/rp_filter", "1"));
    CAY_TRY(setNetSetting(settings + "/accept_redirects", "0"));
    CAY_TRY(setNetSetting(settings + "/send_redirects", "0"));
    CAY_TRY(setNetSetting(settings + "/accept_source_route", "0"));
  }
  // Members of a group talk over their bridge, which is not the router's to judge.
  CAY_TRY(setNetSettingIfThere("bridge/bridge-nf-call-iptables", "0"));
  return setNetSettingIfThere("bridge/bridge-nf-call-ip6tables", "0");
}

Result<> Router::setRules(const Uplink* uplink) {
  RouterShape shape{.way = uplink != nullptr ? uplink->way() : "",
                    .mostConnections = mostConnections(),
                    .mostOfOne = kMostOfOne,
                    .closed = uplink != nullptr ? uplink->closed() : std::vector<sys::Ipv4>()};
  CAY_TRY(inNetSpace(space_, [&]() -> Result<> {
    CAY_TRY(runTool("nft", {"-f", "-"}, routerRules(shape)));
    return setNetSetting("ipv4/ip_forward", "1");
  }));
  ruled_ = true;
  return {};
}

Result<> Router::tryUplink(Result<std::unique_ptr<Uplink>> uplink) {
  if (!uplink) return std::unexpected(std::move(uplink).error());
  auto up = setRules(uplink->get());
  if (up) up = (*uplink)->raise();
  if (!up) {
    (void)(*uplink)->takeDown();
    return up;
  }
  uplink_ = std::move(*uplink);
  name_ = uplink_->name();
  return {};
}

Result<> Router::tryKernel() {
  if (!settings_.noKernel.empty()) return fail(Code::kUnreachable, settings_.noKernel);
  return tryUplink(kernelUplink(space_, settings_.uplink));
}

Result<> Router::upkeep() {
  if (!uplink_) return {};
  CAY_ASSIGN(const bool changed, uplink_->upkeep());
  if (changed) CAY_TRY(setRules(uplink_.get()));
  return {};
}

Result<> Router::takeDown() {
  if (!uplink_) return {};
  return uplink_->takeDown();
}

}  // namespace cay::engine
