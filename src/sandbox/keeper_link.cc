#include "sandbox/keeper_link.h"

#include <unistd.h>

#include <cerrno>

namespace cay::sandbox {
namespace {

constexpr int kMostAtOnce = 256;  // messages of one keeper before it is somebody else's turn

}  // namespace

KeeperLink::KeeperLink(boost::asio::io_context& io, Fd socket, Callbacks callbacks)
    : socket_(io.get_executor(), socket.release()), callbacks_(std::move(callbacks)) {}

Result<std::shared_ptr<KeeperLink>> KeeperLink::over(boost::asio::io_context& io, Fd socket,
                                                     Callbacks callbacks) {
  std::shared_ptr<KeeperLink> link(new KeeperLink(io, std::move(socket), std::move(callbacks)));
  link->self_ = link;
  link->awaitReadable();
  return link;
}

Result<std::shared_ptr<KeeperLink>> KeeperLink::toLiving(boost::asio::io_context& io,
                                                         const SandboxFolder& folder,
                                                         Callbacks callbacks) {
  auto socket = sys::connectAt(folder.base, folder.keeperSocket());
  if (!socket) return fail(Code::kNotFound, "no keeper listens");
  return over(io, std::move(*socket), std::move(callbacks));
}

Result<std::shared_ptr<KeeperLink>> KeeperLink::toNew(boost::asio::io_context& io,
                                                      const SandboxFolder& folder,
                                                      const Spawner& spawn, Callbacks callbacks) {
  const std::string name = folder.keeperSocket();
  (void)::unlinkat(folder.base, name.c_str(), 0);  // left by one that has died
  CAY_ASSIGN(Fd listener, sys::listenAt(folder.base, name));
  // Connected before the keeper runs: the connection waits in the listener's queue, so nothing is
  // polled.
  CAY_ASSIGN(Fd socket, sys::connectAt(folder.base, name));
  CAY_TRY(spawn(std::move(listener)));
  return over(io, std::move(socket), std::move(callbacks));
}

void KeeperLink::awaitReadable() {
  socket_.async_wait(Descriptor::wait_read, [weak = self_](boost::system::error_code error) {
    const auto link = weak.lock();
    if (!link || link->closed_ || error) return;
    link->receiveSome();
    if (!link->closed_) link->awaitReadable();
  });
}

void KeeperLink::receiveSome() {
  for (int count = 0; count < kMostAtOnce && !closed_; ++count) {
    auto packet = sys::receivePacket(socket_.native_handle());
    if (!packet && packet.error().sys == EAGAIN) return;
    if (!packet || packet->data.empty()) return lose();
    callbacks_.onPacket(std::move(*packet));
  }
}

void KeeperLink::send(std::string message, Fd attached) {
  if (closed_) return;
  if (outbox_.empty()) {
    const auto sent = sys::sendPacket(socket_.native_handle(), message, attached.get());
    // A dead keeper is noticed by the reading side, after what it still had to say.
    if (sent || sent.error().sys != EAGAIN) return;
    awaitWritable();
  }
  outbox_.emplace_back(std::move(message), std::move(attached));
}

void KeeperLink::awaitWritable() {
  socket_.async_wait(Descriptor::wait_write, [weak = self_](boost::system::error_code error) {
    const auto link = weak.lock();
    if (!link || link->closed_ || error) return;
    while (!link->outbox_.empty()) {
      const auto& [message, fd] = link->outbox_.front();
      const auto sent = sys::sendPacket(link->socket_.native_handle(), message, fd.get());
      if (!sent && sent.error().sys == EAGAIN) return link->awaitWritable();
      link->outbox_.pop_front();
    }
  });
}

void KeeperLink::lose() {
  const auto onLost = callbacks_.onLost;
  close();
  if (onLost) onLost();
}

void KeeperLink::close() {
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace cay::sandbox
