// The HTTP/1.1 server: accepts, parses strictly, enforces limits and timeouts, calls one Handler.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "net/framing.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::net {

struct ServerLimits {
  size_t maxConnections = 512;              // more get 503
  size_t maxHeadBytes = size_t{64} * 1024;  // more gets 431
  Millis headTimeout{10'000};               // first byte of a head to its end, else 408
  Millis idleTimeout{75'000};               // a keep-alive connection without a request
  Millis bodyTimeout{60'000};               // between two bytes of a request body, else 408
  Millis answerTimeout{60'000};             // a whole answer that the client takes no byte of
  Connects connects = Connects::kRefused;   // allowed: CONNECT reaches the handler
};

class WorkerPool;

class Server {
 public:
  // Listens at once; port 0 takes any free port (the same for all endpoints). The handler, and the
  // workers that read cold files in for sendFile, must outlive `io`'s last task; without workers a
  // cold file blocks the loop. SIGPIPE is ignored from now on, since sendfile cannot be told not to
  // raise it.
  static Result<std::unique_ptr<Server>> listen(
      boost::asio::io_context& io, const std::vector<boost::asio::ip::tcp::endpoint>& at,
      Handler& handler, const ServerLimits& limits, WorkerPool* workers = nullptr);
  // The same on a socket that listens already, by TCP or on a Unix path.
  static Result<std::unique_ptr<Server>> listenOn(boost::asio::io_context& io, Fd listener,
                                                  Handler& handler, const ServerLimits& limits,
                                                  WorkerPool* workers = nullptr);
  virtual ~Server() = default;

  // The port of the first endpoint; 0 where it has none.
  [[nodiscard]] virtual uint16_t port() const = 0;
  [[nodiscard]] virtual size_t connections() const = 0;
  // Serves a connection that somebody else has accepted, under the same limits. What has been read
  // from it already comes first.
  virtual void adopt(Stream stream, Peer peer) = 0;
  // Stops accepting and closes idle connections; those with a request in progress end after its
  // answer.
  virtual void stop() = 0;
};

}  // namespace cay::net
