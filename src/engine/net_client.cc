#include "engine/net_client.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>

#include "engine/net_process.h"
#include "engine/net_protocol.h"
#include "net/await.h"
#include "net/event.h"
#include "sys/file.h"

namespace cay::engine {
namespace {

using sandbox::Reader;

std::unexpected<Error> gone() {
  return fail(Code::kGone, "cay-net has died, and all networks with it");
}

std::unexpected<Error> failureIn(Reader& in) {
  const auto code = in.get<uint8_t>();
  const std::string why(in.text());
  if (!in.ok() || code > static_cast<uint8_t>(kLastCode)) {
    return fail(Code::kInternal, "cay-net does not make sense");
  }
  return fail(static_cast<Code>(code), why);
}

struct Connected {
  Fd socket;
  bool found;
};

// To the one that lives, or to a new one.
Result<Connected> socketTo(const NetClient::Place& place) {
  CAY_ASSIGN(const Fd folder, sys::openAt(AT_FDCWD, place.state.c_str(), O_RDONLY | O_DIRECTORY));
  if (auto living = sys::connectAt(folder.get(), kNetSocket)) {
    return Connected{.socket = *std::move(living), .found = true};
  }
  (void)sys::unlinkAt(folder.get(), kNetSocket);  // left by one that has died
  CAY_ASSIGN(const Fd listener, sys::listenAt(folder.get(), kNetSocket));
  // Connected before it runs: the connection waits in the listener's queue, so nothing is polled.
  CAY_ASSIGN(Fd socket, sys::connectAt(folder.get(), kNetSocket));
  CAY_TRY(startNetProcess(place.settings, listener));
  return Connected{.socket = std::move(socket), .found = false};
}

}  // namespace

net::Task<Result<std::shared_ptr<NetClient>>> NetClient::connect(boost::asio::io_context& io,
                                                                 const Place& place,
                                                                 std::function<void()> onLost) {
  CAY_CO_ASSIGN(Connected to, socketTo(place));
  std::shared_ptr<NetClient> client(
      new NetClient(io, std::move(to.socket), to.found, std::move(onLost)));
  client->self_ = client;
  CAY_CO_TRY(co_await client->awaitHello());
  client->awaitReadable();
  co_return client;
}

net::Task<Result<>> NetClient::awaitHello() {
  sys::Packet packet;
  while (true) {
    const auto [error] = co_await socket_.async_wait(Descriptor::wait_read, net::kAwait);
    if (error) co_return gone();
    auto received = sys::receivePacket(socket_.native_handle());
    if (!received && received.error().sys == EAGAIN) continue;
    if (!received || received->data.empty()) {
      co_return fail(Code::kInternal, "cay-net has died at its start");
    }
    packet = *std::move(received);
    break;
  }
  Reader in(packet.data);
  if (in.get<NetAnswer>() != NetAnswer::kReady) co_return failureIn(in);
  hello_.epoch = in.get<uint32_t>();
  hello_.leadsOut = in.get<bool>();
  hello_.outbound = in.text();
  if (!in.ok()) co_return fail(Code::kInternal, "cay-net does not make sense");
  co_return Result<>();
}

void NetClient::awaitReadable() {
  socket_.async_wait(Descriptor::wait_read, [weak = self_](boost::system::error_code error) {
    const auto client = weak.lock();
    if (!client || client->lost_ || error) return;
    client->receiveAll();
    if (!client->lost_) client->awaitReadable();
  });
}

void NetClient::receiveAll() {
  while (!lost_) {
    auto packet = sys::receivePacket(socket_.native_handle());
    if (!packet && packet.error().sys == EAGAIN) return;
    if (!packet || packet->data.empty()) return lose();
    onPacket(*std::move(packet));
  }
}

void NetClient::onPacket(sys::Packet packet) {
  if (asked_.empty()) return lose();
  const OnAnswer onAnswer = std::move(asked_.front());
  asked_.pop_front();
  Reader in(packet.data);
  if (in.get<NetAnswer>() == NetAnswer::kFailed) return onAnswer(failureIn(in));
  onAnswer(std::move(packet));
}

void NetClient::send(const sandbox::Writer& request, OnAnswer onAnswer) {
  if (lost_) return onAnswer(gone());
  asked_.push_back(std::move(onAnswer));
  if (outbox_.empty()) {
    const auto sent = sys::sendPacket(socket_.native_handle(), request.bytes());
    // A dead cay-net is noticed by the reading side, after what it still had to say.
    if (sent || sent.error().sys != EAGAIN) return;
    awaitWritable();
  }
  outbox_.push_back(request.bytes());
}

void NetClient::awaitWritable() {
  socket_.async_wait(Descriptor::wait_write, [weak = self_](boost::system::error_code error) {
    const auto client = weak.lock();
    if (!client || client->lost_ || error) return;
    while (!client->outbox_.empty()) {
      const auto sent = sys::sendPacket(client->socket_.native_handle(), client->outbox_.front());
      if (!sent && sent.error().sys == EAGAIN) return client->awaitWritable();
      client->outbox_.pop_front();
    }
  });
}

net::Task<Result<sys::Packet>> NetClient::ask(const sandbox::Writer& request) {
  struct Waiting {
    std::optional<Result<sys::Packet>> answer;
    net::Event come;
  };
  const auto waiting = std::make_shared<Waiting>();
  send(request, [waiting](Result<sys::Packet> answer) {
    waiting->answer = std::move(answer);
    waiting->come.notifyAll();
  });
  while (!waiting->answer) co_await waiting->come.wait();
  co_return *std::move(waiting->answer);
}

void NetClient::lose() {
  const auto self = self_.lock();  // a callback may drop the last one
  const auto onLost = std::move(onLost_);
  auto asked = std::move(asked_);
  close();
  for (const OnAnswer& onAnswer : asked) onAnswer(gone());
  if (onLost) onLost();
}

void NetClient::close() {
  lost_ = true;
  onLost_ = nullptr;
  asked_.clear();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace cay::engine
