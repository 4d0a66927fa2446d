#include "engine/networks.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "engine/net_protocol.h"
#include "engine/resolvers.h"

namespace cay::engine {
namespace {

using sandbox::Reader;
using sandbox::Writer;

Writer request(NetRequest kind) {
  Writer out;
  out.put(kind);
  return out;
}

Writer request(NetRequest kind, NetworkId id) {
  Writer out = request(kind);
  out.put(id.number);
  return out;
}

void ignore(const Result<sys::Packet>& /*answer*/) {}

Result<JobNetwork> networkIn(Result<sys::Packet> packet, uint32_t epoch) {
  if (!packet) return std::unexpected(std::move(packet).error());
  Reader in(packet->data);
  JobNetwork out;
  const auto kind = in.get<NetAnswer>();
  out.id = {.epoch = epoch, .number = in.get<uint32_t>()};
  out.address = in.text();
  out.group = in.text();
  out.space = packet->take();
  if (!in.ok() || kind != NetAnswer::kNetwork || !out.space.valid()) {
    return fail(Code::kInternal, "cay-net does not make sense");
  }
  return out;
}

// A new network, which goes back if nobody waits for it any more.
net::Task<Result<JobNetwork>> make(std::shared_ptr<NetClient> client, std::string group) {
  struct Waiting {
    std::optional<Result<JobNetwork>> network;
    net::Event come;
  };
  const auto waiting = std::make_shared<Waiting>();
  Writer asked = request(NetRequest::kMake);
  asked.put(std::string_view(group));
  client->send(asked, [weak = std::weak_ptr(waiting), of = std::weak_ptr(client),
                       epoch = client->hello().epoch](Result<sys::Packet> packet) {
    auto network = networkIn(std::move(packet), epoch);
    if (const auto waiting = weak.lock()) {
      waiting->network = std::move(network);
      waiting->come.notifyAll();
    } else if (const auto client = of.lock(); client && network) {
      client->send(request(NetRequest::kTakeDown, network->id), ignore);
    }
  });
  while (!waiting->network) co_await waiting->come.wait();
  co_return *std::move(waiting->network);
}

}  // namespace

net::Task<Result<std::unique_ptr<Networks>>> Networks::open(boost::asio::io_context& io,
                                                            Options options,
                                                            std::vector<NetworkId> inUse) {
  std::unique_ptr<Networks> networks(new Networks(io, std::move(options)));
  std::vector<sys::Ipv4> resolvers;
  if (networks->options_.resolvers.empty()) {
    resolvers = machineResolvers();
  } else {
    CAY_CO_ASSIGN(resolvers, parseResolvers(networks->options_.resolvers));
  }
  networks->place_ = {.state = networks->options_.state,
                      .settings = {.outbound = networks->options_.outbound,
                                   .uplink = {.leases = networks->options_.leases,
                                              .resolvers = std::move(resolvers)}}};
  CAY_CO_TRY(co_await networks->connect(std::move(inUse)));
  co_return networks;
}

Networks::~Networks() {
  if (client_) client_->close();
}

net::Task<Result<>> Networks::connect(std::vector<NetworkId> inUse) {
  auto onLost = [lost = lost_, told = options_.onLost] {
    *lost = true;
    if (told) told();
  };
  CAY_CO_ASSIGN(client_, co_await NetClient::connect(io_, place_, onLost));
  const auto isStrange = [this](NetworkId id) { return id.epoch != client_->hello().epoch; };
  std::erase_if(inUse, isStrange);
  if (client_->found() && inUse.empty()) {
    // Nobody needs what it holds, and our settings may be others.
    CAY_CO_TRY(co_await client_->ask(request(NetRequest::kShutdown)));
    client_->close();
    CAY_CO_ASSIGN(client_, co_await NetClient::connect(io_, place_, onLost));
  }
  Writer keep = request(NetRequest::kKeep);
  keep.put(static_cast<uint32_t>(inUse.size()));
  for (const NetworkId id : inUse) keep.put(id.number);
  CAY_CO_TRY(co_await client_->ask(keep));
  *lost_ = false;
  spares_ = std::make_shared<std::vector<JobNetwork>>();
  sparesAsked_ = std::make_shared<size_t>(0);
  resolvConf_ =
      client_->hello().leadsOut ? resolvConfText(place_.settings.uplink.resolvers) : std::string();
  makeSpares();
  co_return Result<>();
}

net::Task<Result<>> Networks::revive() {
  while (reviving_) co_await revived_.wait();
  if (!*lost_) co_return Result<>();
  reviving_ = true;
  auto connected = co_await connect({});
  reviving_ = false;
  revived_.notifyAll();
  co_return connected;
}

void Networks::makeSpares() {
  while (spares_->size() + *sparesAsked_ < options_.spares) {
    ++*sparesAsked_;
    Writer asked = request(NetRequest::kMake);
    asked.put(std::string_view());
    client_->send(asked, [spares = spares_, count = sparesAsked_,
                          epoch = client_->hello().epoch](Result<sys::Packet> packet) {
      --*count;
      if (auto network = networkIn(std::move(packet), epoch)) {
        spares->push_back(*std::move(network));
      }
    });
  }
}

net::Task<Result<JobNetwork>> Networks::take(std::string group) {
  CAY_CO_TRY(co_await revive());
  if (group.empty() && !spares_->empty()) {
    JobNetwork spare = std::move(spares_->back());
    spares_->pop_back();
    makeSpares();
    co_return spare;
  }
  co_return co_await make(client_, std::move(group));
}

Result<> Networks::requireOwn(NetworkId id) const {
  if (*lost_ || id.epoch != client_->hello().epoch) {
    return fail(Code::kGone, "the network of this job was lost");
  }
  return {};
}

net::Task<Result<sys::Packet>> Networks::askAbout(NetworkId id, Writer request) {
  CAY_CO_TRY(requireOwn(id));
  auto answer = co_await client_->ask(request);
  if (!answer && answer.error().code == Code::kNotFound) answer.error().code = Code::kGone;
  co_return answer;
}

net::Task<Result<JobNetwork>> Networks::adopt(NetworkId id) {
  co_return networkIn(co_await askAbout(id, request(NetRequest::kFind, id)), id.epoch);
}

void Networks::giveBack(NetworkId id) {
  if (requireOwn(id)) client_->send(request(NetRequest::kTakeDown, id), ignore);
}

net::Task<Result<sys::LinkTraffic>> Networks::traffic(NetworkId id) {
  CAY_CO_ASSIGN(const sys::Packet packet, co_await askAbout(id, request(NetRequest::kTraffic, id)));
  Reader in(packet.data);
  const auto kind = in.get<NetAnswer>();
  sys::LinkTraffic out;
  out.receivedBytes = in.get<uint64_t>();
  out.sentBytes = in.get<uint64_t>();
  if (!in.ok() || kind != NetAnswer::kTraffic) {
    co_return fail(Code::kInternal, "cay-net does not make sense");
  }
  co_return out;
}

net::Task<Result<Fd>> Networks::socketIn(NetworkId id, int family) {
  Writer asked = request(NetRequest::kSocket, id);
  asked.put(family == AF_INET6);
  CAY_CO_ASSIGN(sys::Packet packet, co_await askAbout(id, std::move(asked)));
  Fd socket = packet.take();
  if (!socket.valid()) co_return fail(Code::kInternal, "cay-net does not make sense");
  co_return socket;
}

net::Task<Result<net::Stream>> Networks::dial(NetworkId id, uint16_t port) {
  return net::dialLoopback(port, [this, id](int family) { return socketIn(id, family); });
}

Result<> Networks::join(const JobNetwork& network, const JobSpec& spec, std::string hostsFile) {
  return hosts_.join({.id = spec.id,
                      .address = network.address,
                      .group = spec.group,
                      .groupName = spec.groupName,
                      .aliases = spec.aliases,
                      .file = std::move(hostsFile)});
}

std::vector<std::string> Networks::notes() const {
  std::vector<std::string> out;
  if (!client_->hello().leadsOut) {
    out.push_back("no network beyond this job and its group: " + outbound());
  } else {
    if (outbound().starts_with("slirp4netns")) out.push_back("network through " + outbound());
    if (resolvConf_.empty()) {
      out.emplace_back(
          "names are not resolved: the resolvers of this machine cannot be reached by jobs; name "
          "others (--dns)");
    }
  }
  return out;
}

net::Task<Result<>> Networks::shutdown() {
  if (down_) co_return Result<>();
  down_ = true;
  // One that was killed has left its traces in the machine: the next one removes them.
  CAY_CO_TRY(co_await revive());
  auto answer = co_await client_->ask(request(NetRequest::kShutdown));
  if (!answer && answer.error().code == Code::kGone) {
    CAY_CO_TRY(co_await revive());
    answer = co_await client_->ask(request(NetRequest::kShutdown));
  }
  client_->close();
  *lost_ = true;
  (void)::unlink((options_.state + "/" + kNetSocket).c_str());
  if (!answer) co_return std::unexpected(answer.error());
  co_return Result<>();
}

}  // namespace cay::engine
