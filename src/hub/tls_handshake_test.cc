// How TLS begins, and how it does not.
#include <gmock/gmock.h>

#include <thread>

#include "hub/certificates.h"
#include "hub/tls_fixture.h"
#include "hub/tls_session.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using ::testing::HasSubstr;
using Why = TlsFailure::Why;
using namespace std::literals;

class TlsHandshakeTest : public TlsTest {
 protected:
  // How the handshake with a client that plays by hand fails.
  template <typename Play>
  TlsFailure failureOf(Play play, Millis within = kHandshakeTime) {
    Connection connection(loop_);
    auto accepted = accept(connection, within);
    play(connection.client);
    auto stream = accepted.get();
    if (stream) throw std::runtime_error("the handshake succeeded");
    return stream.error();
  }
};

TEST_F(TlsHandshakeTest, GarbageIsRefusedAtOnce) {
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string(100'000, '\0'),
        std::string(100'000, '\xff'), pattern(100'000), "\x16\x03\x01\x40\x00"s + pattern(0x4000),
        "\x16\x03\x01\x00\x04\x01\x00\x00\x00"s + pattern(64), "\x15\x03\x01\x00\x02\x02\x30"s,
        std::string("SSH-2.0-x\r\n")}) {
    const TlsFailure failure = failureOf([&](RawClient& client) { client.send(garbage); });
    EXPECT_NE(failure.why, Why::kTimeout);
    EXPECT_EQ(failure.serverName, "");
  }
}

TEST_F(TlsHandshakeTest, AClientThatDoesNotTrustUsIsKnown) {
  Connection connection(loop_);
  auto accepted = accept(connection);
  OpensslClient client(std::move(connection.client), "", kTestName);
  EXPECT_FALSE(client.connect());
  const auto stream = accepted.get();
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().why, Why::kUnknownCa);
  EXPECT_EQ(stream.error().serverName, kTestName);
}

TEST_F(TlsHandshakeTest, AClientOfAnOlderVersionThatDoesNotTrustUsIsKnown) {
  Connection connection(loop_);
  auto accepted = accept(connection);
  OpensslClient client(std::move(connection.client), "", kTestName);
  SSL_set_max_proto_version(client.ssl(), TLS1_2_VERSION);
  EXPECT_FALSE(client.connect());
  const auto stream = accepted.get();
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().why, Why::kUnknownCa);
  EXPECT_EQ(stream.error().serverName, kTestName);
}

// The greeting of a client.
std::string greetingOf(const TestCa& ca, int version = TLS1_3_VERSION) {
  const auto context = orThrow(TlsContext::client(ca.ca.caFile()));
  SSL_CTX_set_max_proto_version(context->current(), version);
  const auto session = orThrow(TlsSession::client(*context, kTestName));
  (void)session->handshake();
  return std::string(session->output());
}

TEST_F(TlsHandshakeTest, AClientThatLeavesOnSeeingOurCertificateIsTakenForOne) {
  const TlsFailure left = failureOf([&](RawClient& client) {
    client.send(greetingOf(ca_));
    (void)client.receiveOnce();
    client.close();
  });
  EXPECT_EQ(left.why, Why::kUnknownCa);
  EXPECT_EQ(left.serverName, kTestName);

  const TlsFailure before = failureOf([&](RawClient& client) {
    client.send(greetingOf(ca_).substr(0, 100));
    client.close();
  });
  EXPECT_EQ(before.why, Why::kOther);
}

TEST_F(TlsHandshakeTest, TheHandshakeHasItsTime) {
  const TlsFailure silent =
      failureOf([](RawClient& client) { EXPECT_EQ(client.receiveToEnd(), ""); }, Millis(200));
  EXPECT_EQ(silent.why, Why::kTimeout);
  // However many bytes trickle in.
  const std::string greeting = greetingOf(ca_);
  const TlsFailure slow = failureOf(
      [&](RawClient& client) {
        for (const char c : greeting.substr(0, 60)) {
          client.send({&c, 1});
          std::this_thread::sleep_for(10ms);
        }
      },
      Millis(300));
  EXPECT_EQ(slow.why, Why::kTimeout);
  const TlsFailure halfway = failureOf(
      [&](RawClient& client) {
        client.send(greeting);
        (void)client.receiveOnce();
        std::this_thread::sleep_for(400ms);
      },
      Millis(300));
  EXPECT_EQ(halfway.why, Why::kTimeout);
  EXPECT_EQ(halfway.serverName, kTestName);
}

TEST_F(TlsHandshakeTest, OldVersionsAndOtherProtocolsAreRefused) {
  Connection old(loop_);
  auto oldAccepted = accept(old);
  OpensslClient oldClient(std::move(old.client), ca_.ca.caFile(), kTestName);
  SSL_set_security_level(oldClient.ssl(), 0);
  SSL_set_min_proto_version(oldClient.ssl(), TLS1_1_VERSION);
  SSL_set_max_proto_version(oldClient.ssl(), TLS1_1_VERSION);
  EXPECT_FALSE(oldClient.connect());
  EXPECT_FALSE(oldAccepted.get());

  const auto offering = [&](std::string_view protocols) {
    Connection connection(loop_);
    auto accepted = accept(connection);
    OpensslClient client(std::move(connection.client), ca_.ca.caFile(), kTestName);
    SSL_set_alpn_protos(client.ssl(), reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
    const bool connected = client.connect();
    EXPECT_EQ(accepted.get().has_value(), connected);
    const unsigned char* chosen = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(client.ssl(), &chosen, &length);
    return connected ? std::string(reinterpret_cast<const char*>(chosen), length) : "refused";
  };
  EXPECT_EQ(offering("\x02h2\x08http/1.1"), "http/1.1");
  EXPECT_EQ(offering("\x02h2"), "refused");
}

TEST_F(TlsHandshakeTest, ARenewedCertificateIsShownToNewConnectionsOnly) {
  const auto shown = [](OpensslClient& client) {
    const CertificatePtr certificate(SSL_get1_peer_certificate(client.ssl()));
    return beginsMs(*certificate);
  };
  Connection first(loop_);
  std::optional<OpensslClient> before;
  PlainEnd plainBefore = serve(first, before);

  constexpr int64_t kLater = int64_t{61} * 24 * 3600 * 1000;
  const Certificate renewed = orThrow(ca_.ca.leaf(wallMs() + kLater));
  ASSERT_TRUE(loop_.call([&] { return ca_.context->renew(renewed); }));
  EXPECT_TRUE(before->send("old"));
  EXPECT_EQ(plainBefore.socket.receiveExactly(3), "old");
  EXPECT_TRUE(plainBefore.socket.send("fine"));
  EXPECT_EQ(before->receiveExactly(4), "fine");

  Connection second(loop_);
  auto accepted = accept(second);
  OpensslClient after(std::move(second.client), ca_.ca.caFile(), kTestName);
  X509_VERIFY_PARAM_set_time(SSL_get0_param(after.ssl()), (wallMs() + kLater) / 1000);
  ASSERT_TRUE(after.connect());
  EXPECT_TRUE(accepted.get());
  EXPECT_GT(shown(after), shown(*before));
}

class ConnectTlsTest : public TlsTest {
 protected:
  Result<net::Stream> connect(const std::string& name, const std::string& caFile,
                              Millis within = kHandshakeTime) {
    const auto context = orThrow(TlsContext::client(caFile));
    net::Socket socket(loop_.io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_INET, 0),
                  duplicate(connection_.client.fd()).release());
    return loop_.await(connectTls(context, net::Stream{std::move(socket), {}}, name, within));
  }
  Connection connection_{loop_};
};

TEST_F(ConnectTlsTest, ChecksTheServersName) {
  auto accepted = accept(connection_);
  const auto stream = connect("evil.com", ca_.ca.caFile());
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Code::kUnreachable);
  EXPECT_EQ(stream.error().message, "TLS with 'evil.com': hostname mismatch");
  connection_.client.close();
  EXPECT_FALSE(accepted.get());
}

TEST_F(ConnectTlsTest, ChecksWhoTheServerIs) {
  const TestCa other;
  auto accepted = accept(connection_);
  const auto stream = connect(kTestName, other.ca.caFile());
  ASSERT_FALSE(stream);
  EXPECT_THAT(stream.error().message, HasSubstr("unable to get local issuer certificate"));
  connection_.client.close();
  EXPECT_EQ(accepted.get().error().why, Why::kUnknownCa);
}

TEST_F(ConnectTlsTest, SaysThatTheServerWentAwayOrIsTooSlow) {
  const auto slow = connect(kTestName, ca_.ca.caFile(), Millis(200));
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::kTimeout);
  loop_.call([&] { connection_.server.reset(); });
  const auto gone = connect(kTestName, ca_.ca.caFile());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kUnreachable);
  EXPECT_THAT(gone.error().message, HasSubstr("the server closed the connection"));
}

// What only ends where the connection does must not be taken for whole.
TEST_F(ConnectTlsTest, AServersEndWithoutGoodbyeIsACut) {
  auto accepted = accept(connection_);
  auto stream = connect(kTestName, ca_.ca.caFile());
  ASSERT_TRUE(stream);
  auto server = accepted.get();
  ASSERT_TRUE(server);
  PlainEnd near(*std::move(stream));
  PlainEnd far(*std::move(server));
  EXPECT_TRUE(far.socket.send("half"));
  EXPECT_EQ(near.socket.receiveExactly(4), "half");
  loop_.call([&] { *far.cut = true; });
  far.socket.close();
  EXPECT_EQ(near.socket.receiveToEnd(), "");
  EXPECT_TRUE(loop_.call([&] { return *near.cut; }));
}

}  // namespace
}  // namespace cay::hub
