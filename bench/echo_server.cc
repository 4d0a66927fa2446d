#include "echo_server.h"

#include <netinet/in.h>
#include <sys/epoll.h>

#include <array>
#include <stdexcept>

#include "affinity.h"
#include "sys/socket.h"

namespace cay::bench {
namespace {

constexpr int kStopCheckMs = 50;

Fd listenOnLoopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto listener = sys::listenTcp(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (!listener) throw std::runtime_error(listener.error().message);
  return *std::move(listener);
}

}  // namespace

EchoServer::EchoServer(std::string answer, int cpu)
    : answer_(std::move(answer)),
      listener_(listenOnLoopback()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  port_ = sys::localPort(listener_.get()).value_or(0);
  thread_ = std::jthread([this, cpu](const std::stop_token& stop) {
    if (cpu >= 0) pinThisThread(cpu);
    serve(stop);
  });
}

void EchoServer::serve(const std::stop_token& stop) {
  watch(listener_.get());
  std::array<epoll_event, 64> events;
  while (!stop.stop_requested()) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), kStopCheckMs);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == listener_.get()) {
        acceptOne();
      } else {
        answerOne(events[i].data.fd);
      }
    }
  }
}

void EchoServer::watch(int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void EchoServer::acceptOne() {
  Fd connection(sys::accept(listener_.get()));
  if (!connection.valid()) return;
  const int fd = connection.get();
  connections_.emplace(fd, std::move(connection));
  watch(fd);
}

void EchoServer::answerOne(int fd) {
  std::array<char, 16 * 1024> buffer;
  // Clients of the bench send a request in one piece, so it also arrives as one.
  const ssize_t count = sys::receive(fd, buffer);
  const iovec answer{.iov_base = answer_.data(), .iov_len = answer_.size()};
  if (count <= 0 || sys::send(fd, {&answer, 1}, sys::More::kNo) <= 0) connections_.erase(fd);
}

}  // namespace cay::bench
