#include "sandbox/nursery.h"

#include <poll.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "sandbox/nursery_protocol.h"
#include "sandbox/plan_wire.h"
#include "sandbox/self_process.h"
#include "sys/file.h"
#include "sys/namespaces.h"
#include "sys/packet.h"

namespace cay::sandbox {
namespace {

constexpr char kNurseryName[] = "cay-nursery";
constexpr char kKeeperName[] = "cay-keeper";
constexpr size_t kArgumentCount = 7;
constexpr char kUsersGiven[] = "given";
constexpr char kUsersOwn[] = "own";
constexpr int kPatienceMs = 5'000;

bool waitFor(const Fd& socket, short events) {
  pollfd watched{.fd = socket.get(), .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&watched, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

Result<std::unique_ptr<Nursery>> Nursery::start(NurserySettings settings) {
  std::unique_ptr<Nursery> nursery(new Nursery(std::move(settings)));
  CAY_TRY(nursery->launch());
  return nursery;
}

Result<> Nursery::launch() {
  CAY_ASSIGN(sys::SocketPair pair, sys::packetPair());
  const int both[] = {pair.second.get(), users_.get()};
  CAY_TRY(startProgram(
      settings_.program,
      {kNurseryName, std::to_string(static_cast<int>(settings_.mode)), settings_.sandboxes,
       settings_.groupName, std::to_string(settings_.shape.headBytes),
       std::to_string(settings_.shape.ringBytes), users_.valid() ? kUsersGiven : kUsersOwn},
      std::span(both).first(users_.valid() ? 2 : 1)));
  pair.second.reset();
  if (!waitFor(pair.first, POLLIN)) return fail(Code::kInternal, "the nursery does not answer");
  CAY_ASSIGN(const sys::Packet packet, sys::receivePacket(pair.first.get()));
  if (packet.data.empty()) return fail(Code::kInternal, "the nursery has died");
  Reader in(packet.data);
  if (in.get<NurseryMessage>() != NurseryMessage::kReady) {
    return fail(Code::kExhausted, std::string(in.text()));
  }
  socket_ = std::move(pair.first);
  return {};
}

Result<> Nursery::standWith(const Fd& network) {
  CAY_ASSIGN(Fd users, sys::ownerBelow(network));
  if (!users.valid()) return {};
  if (users_.valid()) {
    CAY_ASSIGN(const sys::Stat wanted, sys::statFd(users.get()));
    CAY_ASSIGN(const sys::Stat own, sys::statFd(users_.get()));
    if (wanted.st_ino == own.st_ino) return {};
  }
  std::swap(users_, users);
  auto launched = launch();
  if (!launched) std::swap(users_, users);
  return launched;
}

Result<> Nursery::spawn(const isolation::Plan& plan, const Fd& listener, const Fd& network) {
  if (network.valid()) CAY_TRY(standWith(network));
  Writer message;
  putPlan(message, plan);
  const int both[] = {listener.get(), network.get()};
  const std::span<const int> fds = std::span(both).first(network.valid() ? 2 : 1);
  bool renewed = false;
  while (true) {
    const auto sent = sys::sendPacket(socket_.get(), message.bytes(), fds);
    if (sent) return {};
    if (sent.error().sys == EAGAIN) {
      if (!waitFor(socket_, POLLOUT)) return fail(Code::kExhausted, "the nursery is overloaded");
      continue;
    }
    if (renewed) return std::unexpected(sent.error());
    renewed = true;
    CAY_TRY(launch());
  }
}

std::optional<int> runAsNursery(int argc, char** argv) {
  const auto settings = nurseryArguments(std::vector<std::string>(argv, argv + argc));
  if (!settings) return std::nullopt;
  static_assert(sizeof kNurseryName >= sizeof kKeeperName);
  for (int i = 0; i < argc; ++i) std::memset(argv[i], 0, std::strlen(argv[i]));
  std::memcpy(argv[0], kKeeperName, sizeof kKeeperName);
  return runNursery(*settings);
}

std::optional<NurserySettings> nurseryArguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != kArgumentCount || arguments[0] != kNurseryName) return std::nullopt;
  const auto mode = parseUint(arguments[1]);
  const auto head = parseUint(arguments[4]);
  const auto ring = parseUint(arguments[5]);
  if (!mode || !head || !ring) return std::nullopt;
  return NurserySettings{.mode = static_cast<isolation::Mode>(*mode),
                         .sandboxes = arguments[2],
                         .groupName = arguments[3],
                         .shape = {.headBytes = *head, .ringBytes = *ring},
                         .usersGiven = arguments[6] == kUsersGiven};
}

}  // namespace cay::sandbox
