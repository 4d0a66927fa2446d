// A connected byte stream (TCP or Unix) with what has already been read from it.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "net/task.h"

namespace cay::net {

using Socket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, Executor>;

// True once a stream has been cut, so that its end must not be taken for an orderly one. Both ends
// of a stream that somebody in this process passes on share it: the Unix sockets between them
// cannot carry a reset.
using Cut = std::shared_ptr<bool>;

struct Stream {
  Socket socket;
  std::string buffered;  // read from the socket, not yet consumed
  Cut cut = nullptr;     // null where the socket itself can tell
};

// A TCP connection to a loopback port: 127.0.0.1, then ::1. kUnreachable if neither listens.
Task<Result<Stream>> dialLoopback(uint16_t port);
// The same by TCP sockets that were made elsewhere, as in another network namespace: one for each
// family that is tried.
using SocketSource = std::function<Task<Result<Fd>>(int family)>;
Task<Result<Stream>> dialLoopback(uint16_t port, SocketSource sockets);

}  // namespace cay::net
