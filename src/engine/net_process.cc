#include "engine/net_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "engine/net_protocol.h"
#include "engine/network_table.h"
#include "sandbox/self_process.h"
#include "sandbox/wire.h"
#include "sys/namespaces.h"
#include "sys/packet.h"

namespace cay::engine {
namespace {

using sandbox::Reader;
using sandbox::Writer;

constexpr char kNetName[] = "cay-net";
constexpr int kExitFailure = 1;
constexpr int64_t kAloneMs = 24LL * 3600 * 1000;
constexpr int kLookAroundMs = 60'000;
constexpr int kStuckMs = 5'000;
constexpr size_t kMostLeaving = 100;

struct Answer {
  Writer message;
  int fd = -1;  // not owned
  Fd made;      // owned, and lives until it is sent
};

Answer failure(const Error& error) {
  Answer answer;
  answer.message.put(NetAnswer::kFailed).put(static_cast<uint8_t>(error.code));
  answer.message.put(std::string_view(error.message));
  return answer;
}

Answer doneOr(const Result<>& result) {
  if (!result) return failure(result.error());
  Answer answer;
  answer.message.put(NetAnswer::kDone);
  return answer;
}

class NetProcess {
 public:
  NetProcess(Router& router, Fd listener, Fd signals)
      : router_(router),
        table_(router),
        listener_(std::move(listener)),
        signals_(std::move(signals)) {}

  int run();

 private:
  // False if it is time to go.
  bool step();
  void accept();
  void serve();
  Answer answer(Reader& in);
  Answer network(uint32_t number);
  Result<> keep(Reader& in);
  void send(const Answer& answer);
  [[nodiscard]] bool forsaken() const;
  [[nodiscard]] int waitMs() const;

  Router& router_;
  NetworkTable table_;
  Fd listener_;
  Fd signals_;
  Fd hub_;
  int64_t hubLeftMs_ = monotonicMs();
  // Tells networks of this process from those of an earlier one with the same numbers.
  uint32_t epoch_ = static_cast<uint32_t>(std::stoul(randomHex(4), nullptr, 16));
  bool going_ = false;
};

int NetProcess::run() {
  while (step()) {
  }
  for (const uint32_t number : table_.numbers()) (void)table_.takeDown(number);
  const auto down = router_.takeDown();
  // Told last: whoever asked may rely on nothing being left, and may start another.
  listener_.reset();
  if (going_) send(doneOr(down));
  return down ? 0 : kExitFailure;
}

int NetProcess::waitMs() const {
  return router_.upkeepMs() > 0 ? router_.upkeepMs() : kLookAroundMs;
}

bool NetProcess::step() {
  pollfd watched[] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                      {.fd = signals_.get(), .events = POLLIN, .revents = 0},
                      {.fd = hub_.get(), .events = POLLIN, .revents = 0}};
  const int woken = ::poll(watched, std::size(watched), table_.leaving() > 0 ? 0 : waitMs());
  if (woken < 0 && errno != EINTR) return false;
  if (watched[1].revents != 0) return false;
  if (watched[2].revents != 0) serve();
  if (watched[0].revents != 0) accept();
  // Those who wait for a network come first.
  if (woken == 0 && table_.leaving() > 0) table_.takeDownOneThatLeft();
  // What fails is tried again at the next round.
  if (router_.upkeepMs() > 0) (void)router_.upkeep();
  return !going_ && !forsaken();
}

bool NetProcess::forsaken() const {
  return !hub_.valid() && monotonicMs() - hubLeftMs_ > kAloneMs && !table_.inhabited();
}

// The one before it can only be the end of a hub that has died.
void NetProcess::accept() {
  Fd hub(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!hub.valid()) return;
  hub_ = std::move(hub);
  Answer hello;
  hello.message.put(NetAnswer::kReady).put(epoch_).put(router_.leadsOut());
  hello.message.put(std::string_view(router_.name()));
  send(hello);
}

void NetProcess::serve() {
  while (hub_.valid() && !going_) {
    auto packet = sys::receivePacket(hub_.get());
    if (!packet && packet.error().sys == EAGAIN) return;
    if (!packet || packet->data.empty()) {
      hub_.reset();
      hubLeftMs_ = monotonicMs();
      return;
    }
    Reader in(packet->data);
    const Answer said = answer(in);
    if (!going_) send(said);
  }
}

Answer NetProcess::answer(Reader& in) {
  switch (in.get<NetRequest>()) {
    case NetRequest::kMake: {
      const std::string group(in.text());
      if (!in.ok()) break;
      // As long as those who left are not too many: they would only become more.
      while (table_.leaving() > kMostLeaving) table_.takeDownOneThatLeft();
      const auto number = table_.make(group);
      return number ? network(*number) : failure(number.error());
    }
    case NetRequest::kFind:
      return network(in.get<uint32_t>());
    case NetRequest::kTakeDown:
      return doneOr(table_.leave(in.get<uint32_t>()));
    case NetRequest::kKeep:
      return doneOr(keep(in));
    case NetRequest::kSocket: {
      const auto number = in.get<uint32_t>();
      auto socket = table_.socket(number, in.get<bool>() ? AF_INET6 : AF_INET);
      if (!socket) return failure(socket.error());
      Answer out = doneOr({});
      out.made = std::move(*socket);
      out.fd = out.made.get();
      return out;
    }
    case NetRequest::kTraffic: {
      const auto traffic = table_.traffic(in.get<uint32_t>());
      if (!traffic) return failure(traffic.error());
      Answer out;
      out.message.put(NetAnswer::kTraffic).put(traffic->receivedBytes).put(traffic->sentBytes);
      return out;
    }
    case NetRequest::kShutdown:
      going_ = true;
      return {};
  }
  return failure({Code::kInternal, 0, "cay-net does not understand its hub"});
}

Answer NetProcess::network(uint32_t number) {
  const auto found = table_.find(number);
  if (!found) return failure(found.error());
  Answer out;
  out.message.put(NetAnswer::kNetwork).put(number);
  out.message.put(std::string_view((*found)->address)).put(std::string_view((*found)->group));
  out.fd = (*found)->space.get();
  return out;
}

Result<> NetProcess::keep(Reader& in) {
  std::vector<uint32_t> kept;
  for (auto left = in.get<uint32_t>(); left > 0 && in.ok(); --left) {
    kept.push_back(in.get<uint32_t>());
  }
  if (!in.ok()) return fail(Code::kInternal, "cay-net does not understand its hub");
  for (const uint32_t number : table_.numbers()) {
    if (std::ranges::find(kept, number) == kept.end()) CAY_TRY(table_.takeDown(number));
  }
  return {};
}

// The hub has room for answers to all that it may ask at once; if not, it is stuck.
void NetProcess::send(const Answer& answer) {
  while (hub_.valid()) {
    const auto sent = sys::sendPacket(hub_.get(), answer.message.bytes(), answer.fd);
    if (sent) return;
    pollfd watched{.fd = hub_.get(), .events = POLLOUT, .revents = 0};
    if (sent.error().sys == EAGAIN && ::poll(&watched, 1, kStuckMs) > 0) continue;
    hub_.reset();
    hubLeftMs_ = monotonicMs();
  }
}

// One descriptor for each network.
void allowManyDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

Fd endSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// An ordinary user becomes the root of a user namespace, which owns the router and all networks.
Result<std::unique_ptr<Router>> makeRouter(Router::Settings settings) {
  if (::geteuid() != 0) {
    CAY_TRY(sys::enterNewUserNamespace(0, 0));
    settings.noKernel = "only root can change the machine's network";
  }
  return Router::make(std::move(settings));
}

// To the hub that waits for us.
void refuse(const Fd& listener, const Error& error) {
  const Fd hub(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (hub.valid()) (void)sys::sendPacket(hub.get(), failure(error).message.bytes());
}

}  // namespace

Result<> startNetProcess(const Router::Settings& settings, const Fd& listener) {
  std::vector<std::string> arguments = {
      kNetName, std::to_string(static_cast<int>(settings.outbound)), settings.uplink.leases};
  for (const sys::Ipv4 resolver : settings.uplink.resolvers) arguments.push_back(resolver.text());
  const int descriptors[] = {listener.get()};
  return sandbox::startSelf(arguments, descriptors);
}

std::optional<Router::Settings> netArguments(const std::vector<std::string>& arguments) {
  constexpr size_t kResolvers = 3;
  if (arguments.size() < kResolvers || arguments[0] != kNetName) return std::nullopt;
  const auto outbound = parseUint(arguments[1]);
  if (!outbound || *outbound > static_cast<uint64_t>(Outbound::kNone)) return std::nullopt;
  Router::Settings settings{.outbound = static_cast<Outbound>(*outbound),
                            .uplink = {.leases = arguments[2], .resolvers = {}}};
  for (size_t i = kResolvers; i < arguments.size(); ++i) {
    const auto resolver = sys::parseIpv4(arguments[i]);
    if (!resolver) return std::nullopt;
    settings.uplink.resolvers.push_back(*resolver);
  }
  return settings;
}

int runNetProcess(const Router::Settings& settings) {
  ::prctl(PR_SET_NAME, kNetName);
  Fd signals = endSignals();
  allowManyDescriptors();
  Fd listener(::fcntl(kNetListener, F_DUPFD_CLOEXEC, kNetListener + 1));
  ::close(kNetListener);
  const auto router = makeRouter(settings);
  if (!router) {
    refuse(listener, router.error());
    return kExitFailure;
  }
  return NetProcess(**router, std::move(listener), std::move(signals)).run();
}

}  // namespace cay::engine
