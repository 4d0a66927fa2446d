#include "host/pooled_dialer.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/clock.h"
#include "host/pooled_access.h"
#include "net/event.h"
#include "sys/file.h"
#include "sys/socket.h"

namespace cay::host {
namespace {

namespace asio = boost::asio;
using Place = std::shared_ptr<const files::Place>;

constexpr int64_t kQueuePatienceMs = 5'000;  // where a server's queue is full
constexpr Millis kQueueStep{10};

struct IdRange {
  uint32_t first;
  uint32_t count;
};

Result<Fd> connectInside(const Place& place, uint16_t port, IdRange owners) {
  const std::string path = "/.sbx/proxy/" + std::to_string(port) + ".sock";
  CAY_ASSIGN(const auto acting, place->act());
  const auto socket = place->openWithoutLinks(path, O_PATH);
  const auto stat = socket ? sys::statFd(socket->get()) : std::unexpected(socket.error());
  const auto refuse = [&](std::string_view why) {
    return fail(Code::kUnreachable, "nothing listens on port " + std::to_string(port) +
                                        ": $SBX_PROXY_DIR/" + std::to_string(port) + ".sock " +
                                        std::string(why));
  };
  if (!stat) return refuse("is not there, or is reached by a link");
  if (!S_ISSOCK(stat->st_mode)) return refuse("is not a socket");
  if (stat->st_uid - owners.first >= owners.count) return refuse("belongs to somebody else");
  auto connected = sys::connectUnix(socket->get());
  if (!connected && connected.error().sys != EAGAIN) return refuse("has no server behind it");
  return connected;
}

}  // namespace

net::Task<Result<net::Stream>> PooledDialer::dial(uint16_t port) {
  if (isolation::isOwn(pooled_.record.spec->network)) return inside_.dial(port);
  return dialUnix(port);
}

net::Task<Result<net::Stream>> PooledDialer::dialUnix(uint16_t port) {
  CAY_CO_ASSIGN(const Place place, co_await placeOf(registry_, pooled_, sandbox::PathRule::kHome));
  const sandbox::UserIds& ids = registry_.folder().userIds();
  const IdRange owners{.first = ids.first(pooled_.record.slot), .count = ids.count};
  const int64_t until = monotonicMs() + kQueuePatienceMs;
  while (true) {
    auto work = [place, port, owners] { return connectInside(place, port, owners); };
    auto socket = co_await workers_.run(std::move(work));
    if (socket) {
      co_return streamOver(co_await asio::this_coro::executor, AF_UNIX, *std::move(socket));
    }
    if (socket.error().sys != EAGAIN) co_return std::unexpected(std::move(socket).error());
    if (monotonicMs() >= until) {
      co_return fail(Code::kUnreachable,
                     "the server on port " + std::to_string(port) + " takes no connections");
    }
    co_await net::sleepFor(kQueueStep);
  }
}

}  // namespace cay::host
