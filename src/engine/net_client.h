// The hub's end of its conversation with cay-net: finds the one that lives or starts one. Requests
// may be sent at any time; answers come in their order. On the loop's thread.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "engine/router.h"
#include "net/task.h"
#include "sandbox/wire.h"
#include "sys/packet.h"

namespace cay::engine {

class NetClient {
 public:
  struct Place {
    std::string state;  // folder of the socket
    Router::Settings settings;
  };
  struct Hello {
    uint32_t epoch = 0;
    bool leadsOut = false;
    std::string outbound;
  };
  // An answer that is not a failure.
  using OnAnswer = std::function<void(Result<sys::Packet>)>;

  // `onLost` is called once when cay-net has died; after that every request fails with kGone.
  static net::Task<Result<std::shared_ptr<NetClient>>> connect(boost::asio::io_context& io,
                                                               const Place& place,
                                                               std::function<void()> onLost);

  [[nodiscard]] const Hello& hello() const { return hello_; }
  // It was there before, with the settings of its time.
  [[nodiscard]] bool found() const { return found_; }
  // Exactly one call of `onAnswer` follows, unless close() comes first.
  void send(const sandbox::Writer& request, OnAnswer onAnswer);
  net::Task<Result<sys::Packet>> ask(const sandbox::Writer& request);
  // No more calls.
  void close();

 private:
  using Descriptor = boost::asio::posix::basic_stream_descriptor<net::Executor>;

  NetClient(boost::asio::io_context& io, Fd socket, bool found, std::function<void()> onLost)
      : socket_(io.get_executor(), socket.release()), found_(found), onLost_(std::move(onLost)) {}
  net::Task<Result<>> awaitHello();
  void awaitReadable();
  void awaitWritable();
  void receiveAll();
  void onPacket(sys::Packet packet);
  void lose();

  Descriptor socket_;
  bool found_;
  std::function<void()> onLost_;
  Hello hello_;
  std::deque<std::string> outbox_;
  std::deque<OnAnswer> asked_;
  bool lost_ = false;
  std::weak_ptr<NetClient> self_;
};

}  // namespace cay::engine
