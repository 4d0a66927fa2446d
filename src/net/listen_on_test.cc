// Serving on sockets that somebody else has made to listen.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/server.h"
#include "sys/file.h"
#include "sys/packet.h"
#include "sys/socket.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"
#include "testing/temp_dir.h"

namespace cay::net {
namespace {

using cay::testing::RawClient;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Answers final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body&, Response& response) override {
    (void)co_await send(response, {},
                        head.peer.address.empty() ? "from nowhere" : head.peer.address);
  }
};

class ListenOnTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Server>> listenOn(const Fd& listener) {
    return loop_.call([&] {
      Fd copy(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 3));
      return Server::listenOn(loop_.io(), std::move(copy), answers_, {});
    });
  }
  static std::string ask(RawClient client) {
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return client.receiveToEnd();
  }

  Answers answers_;
  testing::LoopThread loop_;
};

TEST_F(ListenOnTest, AUnixSocketThatOutlivesItsServers) {
  const testing::TempDir dir;
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (dir.path() / "s").string().copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), at, sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const auto connected = [&] {
    Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), at, sizeof address), 0);
    return RawClient(std::move(client));
  };
  for (int round = 0; round < 2; ++round) {
    RawClient early = connected();  // before anybody serves
    auto server = listenOn(listener);
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_EQ((*server)->port(), 0);
    EXPECT_THAT(ask(std::move(early)), HasSubstr("from nowhere"));
    EXPECT_THAT(ask(connected()), StartsWith("HTTP/1.1 200"));
    loop_.call([&] { server->reset(); });
  }
}

TEST_F(ListenOnTest, ATcpSocket) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  auto server = listenOn(listener);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ((*server)->port(), sys::localPort(listener.get()).value());
  EXPECT_THAT(ask(RawClient::connect((*server)->port())), HasSubstr("127.0.0.1"));
  int noDelay = 0;
  socklen_t length = sizeof noDelay;
  ::getsockopt(listener.get(), IPPROTO_TCP, TCP_NODELAY, &noDelay, &length);
  EXPECT_EQ(noDelay, 1) << "answers wait for nobody's acknowledgement";
  loop_.call([&] { server->reset(); });
}

TEST_F(ListenOnTest, WhatDoesNotListenIsRefused) {
  const Fd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const testing::TempDir dir;
  const Fd folder = sys::openAt(AT_FDCWD, dir.path().c_str(), O_RDONLY | O_DIRECTORY).value();
  const Fd packets = sys::listenAt(folder.get(), "s").value();
  for (const Fd* fd : {&silent, &datagrams, &file, &packets}) EXPECT_FALSE(listenOn(*fd));
}

}  // namespace
}  // namespace cay::net
