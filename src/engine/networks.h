// The networks of jobs, as the hub sees them: cay-net makes and holds them (net_process.h), and
// they outlive the hub.
//
// A network is a namespace with a loopback and, where this machine allows, one link to the router:
// out through address translation, nothing in. Networks outside one group exchange no packets; the
// machine's own addresses and 169.254.0.0/16 are closed to all. Some are made ahead. On the loop's
// thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/group_hosts.h"
#include "engine/job.h"
#include "engine/net_client.h"
#include "engine/uplink.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::engine {

// Names a network for good: a later cay-net gives the same numbers again.
struct NetworkId {
  uint32_t epoch = 0;  // of the cay-net that made it
  uint32_t number = 0;
  bool operator==(const NetworkId&) const = default;
};

struct JobNetwork {
  NetworkId id;
  Fd space;             // the namespace
  std::string address;  // "100.65.0.5"; empty: loopback only
  std::string group;
};

class Networks {
 public:
  struct Options {
    std::string state;  // folder
    Outbound outbound = Outbound::kAuto;
    std::vector<std::string> resolvers;  // IPv4 addresses; empty: those of the machine
    size_t spares = 16;
    std::string leases = "/run/cay/uplinks";  // one for all hubs of a machine
    // cay-net has died: the networks of all jobs have lost their links for good. The next take()
    // starts another.
    std::function<void()> onLost;
  };

  // Starts cay-net, or finds the one that lives. `inUse` are kept, all others are taken down.
  static net::Task<Result<std::unique_ptr<Networks>>> open(boost::asio::io_context& io,
                                                           Options options,
                                                           std::vector<NetworkId> inUse);
  ~Networks();

  // A new one. kUnreachable, with the reason, for a group that cannot be had here.
  net::Task<Result<JobNetwork>> take(std::string group);
  // That of a job which is still there; kGone if it was lost.
  net::Task<Result<JobNetwork>> adopt(NetworkId id);
  // Everything in it must have ended.
  void giveBack(NetworkId id);
  // Since its beginning, as the job sees it.
  net::Task<Result<sys::LinkTraffic>> traffic(NetworkId id);
  // A connection to a port on its loopback. kUnreachable if nothing listens.
  net::Task<Result<net::Stream>> dial(NetworkId id, uint16_t port);

  // Writes the hosts file of a job, and those of all members of its group anew.
  Result<> join(const JobNetwork& network, const JobSpec& spec, std::string hostsFile);
  void leave(std::string_view job) { hosts_.leave(job); }
  // What /etc/resolv.conf of a job says.
  [[nodiscard]] const std::string& resolvConf() const { return resolvConf_; }

  // "kernel nat", "slirp4netns…", "loopback only: <why>"
  [[nodiscard]] const std::string& outbound() const { return client_->hello().outbound; }
  // What is weaker here than it should be, in sentences for people.
  [[nodiscard]] std::vector<std::string> notes() const;

  // Takes everything down, cay-net included. kInternal if something is left in the machine.
  net::Task<Result<>> shutdown();

 private:
  // Shared with answers that come later than we live.
  using Spares = std::shared_ptr<std::vector<JobNetwork>>;

  Networks(boost::asio::io_context& io, Options options) : io_(io), options_(std::move(options)) {}
  net::Task<Result<>> connect(std::vector<NetworkId> inUse);
  // With a cay-net that lives.
  net::Task<Result<>> revive();
  void makeSpares();
  [[nodiscard]] Result<> requireOwn(NetworkId id) const;
  // A TCP socket in it.
  net::Task<Result<Fd>> socketIn(NetworkId id, int family);
  net::Task<Result<sys::Packet>> askAbout(NetworkId id, sandbox::Writer request);

  boost::asio::io_context& io_;
  Options options_;
  NetClient::Place place_;
  std::string resolvConf_;
  std::shared_ptr<NetClient> client_;
  // Set by onLost, which may come when we are gone.
  std::shared_ptr<bool> lost_ = std::make_shared<bool>(false);
  bool down_ = false;
  bool reviving_ = false;
  net::Event revived_;
  Spares spares_ = std::make_shared<std::vector<JobNetwork>>();
  std::shared_ptr<size_t> sparesAsked_ = std::make_shared<size_t>(0);
  GroupHosts hosts_;
};

}  // namespace cay::engine
