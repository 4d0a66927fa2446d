// The host's end of the connection to a keeper: finds a living one or has one started, sends
// messages and hands over what comes back. On the loop's thread.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "net/task.h"
#include "sandbox/paths.h"
#include "sys/packet.h"

namespace cay::sandbox {

class KeeperLink {
 public:
  // Starts a keeper process that takes the listener over. May block for the length of an exec.
  using Spawner = std::function<Result<>(Fd listener)>;
  struct Callbacks {
    std::function<void(sys::Packet)> onPacket;
    std::function<void()> onLost;  // the keeper has died; the link is of no more use
  };

  // To a keeper that already listens in the folder; kNotFound if there is none.
  static Result<std::shared_ptr<KeeperLink>> toLiving(boost::asio::io_context& io,
                                                      const SandboxFolder& folder,
                                                      Callbacks callbacks);
  // To a new one.
  static Result<std::shared_ptr<KeeperLink>> toNew(boost::asio::io_context& io,
                                                   const SandboxFolder& folder,
                                                   const Spawner& spawn, Callbacks callbacks);

  // Sends at once, or as soon as the keeper takes it; order is kept. Never fails: if the keeper
  // dies, onLost tells.
  void send(std::string message, Fd attached = {});
  // No more callbacks.
  void close();

 private:
  using Descriptor = boost::asio::posix::basic_stream_descriptor<net::Executor>;

  KeeperLink(boost::asio::io_context& io, Fd socket, Callbacks callbacks);
  static Result<std::shared_ptr<KeeperLink>> over(boost::asio::io_context& io, Fd socket,
                                                  Callbacks callbacks);
  void awaitReadable();
  void awaitWritable();
  void receiveSome();
  void lose();

  Descriptor socket_;
  Callbacks callbacks_;
  std::deque<std::pair<std::string, Fd>> outbox_;
  bool closed_ = false;
  std::weak_ptr<KeeperLink> self_;
};

}  // namespace cay::sandbox
