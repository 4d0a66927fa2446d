#include "request_flood.h"

#include <sys/epoll.h>

#include <array>
#include <deque>
#include <stdexcept>
#include <vector>

#include "samples.h"
#include "sys/socket.h"
#include "testing/raw_client.h"

namespace cay::bench {
namespace {

constexpr int kPatienceMs = 10'000;

struct Connection {
  testing::RawClient socket;
  size_t due = 0;  // bytes of the answer that have not come
};

}  // namespace

double answersPerSecond(const Flood& flood) {
  testing::RawClient probe = testing::RawClient::connect(flood.port);
  const std::string sample = probe.ask(flood.request);
  if (!sample.starts_with("HTTP/1.1 200 ")) throw std::runtime_error("not answered: " + sample);

  const Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::deque<Connection> connections;
  for (int i = 0; i < flood.connections; ++i) {
    Connection& one = connections.emplace_back(testing::RawClient::connect(flood.port));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &one}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, one.socket.fd(), &event);
  }
  const auto ask = [&](Connection& one) {
    one.due = sample.size();
    if (!one.socket.send(flood.request)) throw std::runtime_error("a connection was closed");
  };

  std::array<epoll_event, 64> events;
  std::array<char, 16 * 1024> buffer;
  size_t answers = 0;
  const auto start = Clock::now();
  for (Connection& one : connections) ask(one);
  while (secondsSince(start) < flood.seconds) {
    const int count =
        ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), kPatienceMs);
    if (count <= 0) throw std::runtime_error("no answer within 10 s");
    for (int i = 0; i < count; ++i) {
      auto& one = *static_cast<Connection*>(events[i].data.ptr);
      const ssize_t got = sys::receive(one.socket.fd(), buffer);
      if (got <= 0 || static_cast<size_t>(got) > one.due) {
        throw std::runtime_error("an answer of unexpected length");
      }
      one.due -= static_cast<size_t>(got);
      if (one.due > 0) continue;
      ++answers;
      ask(one);
    }
  }
  return static_cast<double>(answers) / secondsSince(start);
}

}  // namespace cay::bench
