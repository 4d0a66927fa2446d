// TLS in tests: a CA with its server context, streams over real TCP, and a client that is OpenSSL's
// own. Every wait is bounded, so a test fails instead of hanging.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <csignal>
#include <expected>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "hub/ca.h"
#include "hub/openssl.h"
#include "hub/tls_context.h"
#include "hub/tls_stream.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"
#include "testing/temp_dir.h"

namespace cay::hub {

template <typename T>
T orThrow(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

struct TestCa {
  explicit TestCa(const std::string& domain = "cay.localhost")
      : ca(orThrow(Ca::open((temp.path() / "ca").string(), domain, wallMs()))),
        context(orThrow(TlsContext::server(orThrow(ca.leaf(wallMs()))))) {}

  testing::TempDir temp;
  Ca ca;
  std::shared_ptr<TlsContext> context;
};

// OpenSSL over a blocking socket.
class OpensslClient {
 public:
  // Without a CA file it trusts nobody.
  OpensslClient(testing::RawClient socket, const std::string& caFile, const std::string& name)
      : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_client_method())) {
    std::signal(SIGPIPE, SIG_IGN);
    if (!caFile.empty()) SSL_CTX_load_verify_file(context_.get(), caFile.c_str());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set1_host(ssl_.get(), name.c_str());
    SSL_set_tlsext_host_name(ssl_.get(), name.c_str());
    const timeval limit{.tv_sec = testing::RawClient::kWaitMs / 1000, .tv_usec = 0};
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    SSL_set_fd(ssl_.get(), socket_.fd());
  }

  SSL* ssl() { return ssl_.get(); }
  testing::RawClient& socket() { return socket_; }

  bool connect() { return SSL_connect(ssl()) == 1; }
  bool send(std::string_view data) {
    return SSL_write(ssl(), data.data(), static_cast<int>(data.size())) ==
           static_cast<int>(data.size());
  }
  std::string receiveExactly(size_t count) {
    std::string data(count, '\0');
    size_t got = 0;
    while (got < count) {
      const int more = SSL_read(ssl(), data.data() + got, static_cast<int>(count - got));
      if (more <= 0) break;
      got += static_cast<size_t>(more);
    }
    data.resize(got);
    return data;
  }
  std::string receiveToEnd() {
    std::string data;
    for (;;) {
      const std::string piece = receiveSome();
      if (piece.empty()) return data;
      data += piece;
    }
  }
  std::string receiveSome() {
    std::string piece(size_t{64} * 1024, '\0');
    const int count = SSL_read(ssl(), piece.data(), static_cast<int>(piece.size()));
    endedInOrder_ = SSL_get_error(ssl(), count) == SSL_ERROR_ZERO_RETURN;
    ERR_clear_error();
    piece.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return piece;
  }
  // After the end: the server has said so (close_notify).
  [[nodiscard]] bool endedInOrder() const { return endedInOrder_; }
  // Sends close_notify.
  void endSending() { SSL_shutdown(ssl()); }

 private:
  testing::RawClient socket_;
  SslContextPtr context_;
  SslPtr ssl_;
  bool endedInOrder_ = false;
};

inline Fd duplicate(int fd) {
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// A TCP connection: one end for a blocking client, one for tasks of the loop.
struct Connection {
  explicit Connection(testing::LoopThread& loop, int receiveBuffer = 0)
      : client(testing::RawClient::connect(listener.port(), receiveBuffer)) {
    auto accepted = listener.accept();
    if (!accepted) throw std::runtime_error("nobody came");
    net::Socket socket(loop.io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_INET, 0),
                  duplicate(accepted->fd()).release());
    server.emplace(net::Stream{std::move(socket), {}});
  }

  testing::RawListener listener;
  testing::RawClient client;
  std::optional<net::Stream> server;
};

// The plain end of a TLS stream as a blocking socket.
struct PlainEnd {
  explicit PlainEnd(net::Stream stream)
      : cut(std::move(stream.cut)), socket(Fd(stream.socket.release())) {
    ::fcntl(socket.fd(), F_SETFL, 0);
  }
  net::Cut cut;
  testing::RawClient socket;
};

inline constexpr const char* kTestName = "abc--8000.cay.localhost";

// Bytes whose order shows.
inline std::string pattern(size_t size) {
  std::string text(size, '\0');
  uint32_t state = 1;
  for (char& c : text) {
    state = state * 1664525U + 1013904223U;
    c = static_cast<char>(state >> 24U);
  }
  return text;
}

// A server of TLS on a loop of its own.
class TlsTest : public ::testing::Test {
 protected:
  using Accepted = std::expected<net::Stream, TlsFailure>;

  // Accepts the connection's server end in the background.
  std::future<Accepted> accept(Connection& connection, Millis within = kHandshakeTime) {
    return std::async(std::launch::async, [&, within] {
      return loop_.await(acceptTls(ca_.context, *std::move(connection.server), within));
    });
  }
  // The plain end of a connection with this client; fails the test if there is none.
  PlainEnd serve(Connection& connection, std::optional<OpensslClient>& client) {
    auto accepted = accept(connection);
    client.emplace(std::move(connection.client), ca_.ca.caFile(), kTestName);
    EXPECT_TRUE(client->connect());
    auto stream = accepted.get();
    if (!stream) throw std::runtime_error("the handshake failed");
    return PlainEnd(*std::move(stream));
  }

  TestCa ca_;
  testing::LoopThread loop_;
};

}  // namespace cay::hub
