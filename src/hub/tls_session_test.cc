#include "hub/tls_session.h"

#include <gmock/gmock.h>

#include <array>

#include "hub/tls_fixture.h"
#include "sys/io.h"

namespace cay::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = TlsSession::State;

// Carries what one wants sent to the other, in pieces of at most `step` bytes, one for each call.
bool carry(TlsSession& from, TlsSession& to, size_t step) {
  const std::string piece(from.output().substr(0, step));
  from.consumeOutput(piece.size());
  to.feed(piece);
  return !piece.empty();
}

std::string readAll(TlsSession& session, State& state) {
  std::string all;
  std::array<char, 1000> piece;
  for (;;) {
    const auto [got, count] = session.read(piece);
    state = got;
    if (got != State::kReady) return all;
    all.append(piece.data(), count);
  }
}

class TlsSessionTest : public ::testing::Test {
 protected:
  // Both, until neither has anything to say.
  void shakeHands(size_t step = SIZE_MAX) {
    do {
      clientState_ = client_->handshake();
      serverState_ = server_->handshake();
      const bool out = carry(*client_, *server_, step);
      const bool back = carry(*server_, *client_, step);
      if (!out && !back) break;
    } while (true);
  }

  TestCa ca_;
  std::shared_ptr<TlsContext> trusting_ = orThrow(TlsContext::client(ca_.ca.caFile()));
  std::unique_ptr<TlsSession> server_ = orThrow(TlsSession::server(*ca_.context));
  std::unique_ptr<TlsSession> client_ =
      orThrow(TlsSession::client(*trusting_, "abc--80.cay.localhost"));
  State clientState_ = State::kHungry;
  State serverState_ = State::kHungry;
};

TEST_F(TlsSessionTest, TalksWhateverThePiecesAre) {
  for (const size_t step : {size_t{1}, size_t{7}, SIZE_MAX}) {
    server_ = orThrow(TlsSession::server(*ca_.context));
    client_ = orThrow(TlsSession::client(*trusting_, "abc--80.cay.localhost"));
    shakeHands(step);
    ASSERT_EQ(clientState_, State::kReady) << client_->reason();
    ASSERT_EQ(serverState_, State::kReady) << server_->reason();
    EXPECT_EQ(server_->serverName(), "abc--80.cay.localhost");

    const std::string large(100'000, 'x');
    EXPECT_TRUE(client_->write(large));
    std::string got;
    State state = State::kReady;
    while (carry(*client_, *server_, step)) got += readAll(*server_, state);
    EXPECT_EQ(got, large);
    EXPECT_EQ(state, State::kHungry);
  }
}

TEST_F(TlsSessionTest, EndsEachDirectionByItself) {
  shakeHands();
  client_->close();
  carry(*client_, *server_, SIZE_MAX);
  State state = State::kReady;
  EXPECT_EQ(readAll(*server_, state), "");
  EXPECT_EQ(state, State::kEnded);
  EXPECT_TRUE(server_->write("still here"));
  server_->close();
  carry(*server_, *client_, SIZE_MAX);
  EXPECT_EQ(readAll(*client_, state), "still here");
  EXPECT_EQ(state, State::kEnded);
}

TEST_F(TlsSessionTest, AChangedByteBreaksIt) {
  shakeHands();
  EXPECT_TRUE(client_->write("secret"));
  std::string record(client_->output());
  record.back() ^= 1;
  server_->feed(record);
  State state = State::kReady;
  EXPECT_EQ(readAll(*server_, state), "");
  EXPECT_EQ(state, State::kBroken);
  EXPECT_FALSE(server_->distrusted());
  EXPECT_FALSE(server_->output().empty());  // an alert
}

TEST_F(TlsSessionTest, ACutRecordIsNotAnEnd) {
  shakeHands();
  EXPECT_TRUE(client_->write("secret"));
  server_->feed(client_->output().substr(0, client_->output().size() - 1));
  State state = State::kReady;
  EXPECT_EQ(readAll(*server_, state), "");
  EXPECT_EQ(state, State::kHungry);
}

TEST_F(TlsSessionTest, AServerThatIsNotTrustedHearsIt) {
  const TestCa other;
  const auto distrusting = orThrow(TlsContext::client(other.ca.caFile()));
  client_ = orThrow(TlsSession::client(*distrusting, "abc--80.cay.localhost"));
  shakeHands();
  EXPECT_EQ(clientState_, State::kBroken);
  EXPECT_THAT(client_->reason(), HasSubstr("unable to get local issuer certificate"));
  EXPECT_EQ(serverState_, State::kBroken);
  EXPECT_TRUE(server_->distrusted());
  EXPECT_EQ(server_->serverName(), "abc--80.cay.localhost");
}

TEST_F(TlsSessionTest, AServerOfAnotherNameIsRefused) {
  for (const char* name : {"evil.com", "a.b.cay.localhost", "127.0.0.1", "::1"}) {
    server_ = orThrow(TlsSession::server(*ca_.context));
    client_ = orThrow(TlsSession::client(*trusting_, name));
    shakeHands();
    EXPECT_EQ(clientState_, State::kBroken) << name;
    EXPECT_THAT(client_->reason(), HasSubstr("mismatch")) << name;
  }
  EXPECT_FALSE(TlsSession::client(*trusting_, ""));
}

TEST_F(TlsSessionTest, AddressesAreNotSentAsNames) {
  client_ = orThrow(TlsSession::client(*trusting_, "127.0.0.1"));
  shakeHands();
  EXPECT_THAT(server_->serverName(), IsEmpty());
}

TEST_F(TlsSessionTest, KeepsNoBuffersWhenIdle) {
  shakeHands();
  EXPECT_TRUE(server_->write(std::string(10'000, 'x')));
  server_->consumeOutput(4'000);
  EXPECT_EQ(server_->output().size(), 10'000U + 22 - 4'000);
  server_->consumeOutput(server_->output().size());
  EXPECT_THAT(server_->output(), IsEmpty());
}

TEST(TlsContext, WantsAKeyThatFits) {
  const TestCa first;
  TestCa second;
  Certificate mixed = orThrow(second.ca.leaf(wallMs()));
  mixed.keyPem = orThrow(Ca(first.ca).leaf(wallMs())).keyPem;
  const auto context = TlsContext::server(mixed);
  ASSERT_FALSE(context);
  EXPECT_EQ(context.error().code, Code::kInvalid);
  EXPECT_FALSE(TlsContext::server({}));
  EXPECT_FALSE(TlsContext::client("/nowhere"));
  // A renewal that fails changes nothing.
  SSL_CTX* before = second.context->current();
  EXPECT_FALSE(second.context->renew(mixed));
  EXPECT_EQ(second.context->current(), before);
}

TEST(TlsContext, ShowsTheWholeChain) {
  TestCa ca;
  Certificate leaf = orThrow(ca.ca.leaf(wallMs()));
  leaf.certificatePem += sys::readFile(ca.ca.caFile().c_str()).value();
  const auto server = orThrow(TlsContext::server(leaf));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(server->current(), static_cast<void*>(&chain));
  EXPECT_EQ(sk_X509_num(chain), 1);
}

}  // namespace
}  // namespace cay::hub
