// The router of a hub: a namespace that all networks of jobs hang on. For cay-net.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/uplink.h"
#include "sys/netlink.h"

namespace cay::engine {

class Router {
 public:
  struct Settings {
    Outbound outbound = Outbound::kAuto;
    UplinkPlan uplink;
    std::string noKernel = {};  // why the kernel cannot be the way out; empty: it is tried
  };
  // Fails if what was asked for by name cannot be had. With kAuto it always comes up, if need be
  // without links (hasLinks) or without a way out; name() says so.
  static Result<std::unique_ptr<Router>> make(Settings settings);

  // "kernel nat", "slirp4netns", "loopback only: <why>"
  [[nodiscard]] const std::string& name() const { return name_; }
  // Packets of jobs can leave.
  [[nodiscard]] bool leadsOut() const { return uplink_ != nullptr; }
  // Its rules stand, so that links can be made to it.
  [[nodiscard]] bool hasLinks() const { return ruled_; }
  [[nodiscard]] const Fd& space() const { return space_; }
  // In its namespace.
  sys::Netlink& netlink() { return *netlink_; }

  [[nodiscard]] int upkeepMs() const { return uplink_ ? uplink_->upkeepMs() : 0; }
  Result<> upkeep();
  Result<> takeDown();

 private:
  explicit Router(Settings settings) : settings_(std::move(settings)) {}
  Result<> makeSpace();
  Result<> furnishSpace();
  // Rules first: without them nothing is connected.
  Result<> tryUplink(Result<std::unique_ptr<Uplink>> uplink);
  Result<> tryKernel();
  Result<> setRules(const Uplink* uplink);

  Settings settings_;
  std::string name_;
  Fd space_;
  std::unique_ptr<sys::Netlink> netlink_;
  std::unique_ptr<Uplink> uplink_;
  bool ruled_ = false;
};

}  // namespace cay::engine
