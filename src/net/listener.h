// Listening sockets, and the loops that accept from them.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "net/http.h"
#include "net/stream.h"

namespace cay::net {

class Listener {
 public:
  // Gets every connection, on the loop's thread.
  using Admit = std::function<void(Stream stream, Peer peer)>;

  // Listens at once; port 0 takes any free port (the same for all endpoints).
  static Result<std::unique_ptr<Listener>> listen(
      boost::asio::io_context& io, const std::vector<boost::asio::ip::tcp::endpoint>& at,
      Admit admit);
  // The same on a socket that listens already, by TCP or on a Unix path.
  static Result<std::unique_ptr<Listener>> listenOn(boost::asio::io_context& io, Fd listener,
                                                    Admit admit);
  virtual ~Listener() = default;

  // The port of the first endpoint; 0 where it has none.
  [[nodiscard]] virtual uint16_t port() const = 0;
  // Accepts no more; so does the end of this object.
  virtual void stop() = 0;
};

}  // namespace cay::net
