#include "hub/certificate_upkeep.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "hub/certificates.h"
#include "hub/tls_fixture.h"

namespace cay::hub {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kDay = int64_t{24} * 3600 * 1000;

class CertificateUpkeepTest : public TlsTest {
 protected:
  // What a client of the context gets to see.
  std::string shownBy(const std::shared_ptr<TlsContext>& context) {
    Connection connection(loop_);
    auto accepted = std::async(std::launch::async, [&] {
      return loop_.await(acceptTls(context, *std::move(connection.server)));
    });
    OpensslClient client(std::move(connection.client), ca_.ca.caFile(), kTestName);
    SSL_set_verify(client.ssl(), SSL_VERIFY_NONE, nullptr);
    EXPECT_TRUE(client.connect());
    (void)accepted.get();
    const CertificatePtr certificate(SSL_get1_peer_certificate(client.ssl()));
    return textOf(*certificate).value_or("none");
  }
  std::unique_ptr<CertificateUpkeep> opened(CertificateSource source, int64_t nowMs = wallMs()) {
    return orThrow(CertificateUpkeep::open(std::move(source), workers_, nowMs));
  }
  bool look(CertificateUpkeep& upkeep, int64_t nowMs = wallMs()) {
    return loop_.await(upkeep.look(nowMs));
  }

  net::WorkerPool workers_{1};
};

TEST_F(CertificateUpkeepTest, RenewsTheOwnCertificateBeforeItEnds) {
  const int64_t now = wallMs();
  const auto upkeep = opened(fromCa(ca_.ca), now);
  const std::string first = shownBy(upkeep->context());
  EXPECT_FALSE(look(*upkeep, now + 59 * kDay));
  EXPECT_EQ(shownBy(upkeep->context()), first);
  EXPECT_TRUE(look(*upkeep, now + 61 * kDay));
  EXPECT_NE(shownBy(upkeep->context()), first);
  EXPECT_FALSE(look(*upkeep, now + 62 * kDay));
}

class OwnFilesTest : public CertificateUpkeepTest {
 protected:
  void write(const Certificate& certificate, const Certificate& key) {
    (void)dir_.write("cert.pem", certificate.certificatePem);
    (void)dir_.write("key.pem", key.keyPem);
  }
  [[nodiscard]] CertificateSource files() const {
    return fromFiles((dir_.path() / "cert.pem").string(), (dir_.path() / "key.pem").string());
  }
  Certificate one_ = orThrow(TestCa().ca.leaf(wallMs()));
  Certificate other_ = orThrow(TestCa().ca.leaf(wallMs()));
  testing::TempDir dir_;
};

TEST_F(OwnFilesTest, AreReadAgainWhenTheyChange) {
  write(one_, one_);
  const auto upkeep = opened(files());
  EXPECT_EQ(shownBy(upkeep->context()), one_.certificatePem);
  EXPECT_FALSE(look(*upkeep));
  write(other_, other_);
  EXPECT_TRUE(look(*upkeep));
  EXPECT_EQ(shownBy(upkeep->context()), other_.certificatePem);
}

// As in the midst of somebody's renewal, or after a mistake.
TEST_F(OwnFilesTest, ThatAreNoGoodChangeNothing) {
  write(one_, one_);
  const auto upkeep = opened(files());
  write(other_, one_);
  EXPECT_FALSE(look(*upkeep));
  (void)dir_.write("cert.pem", "garbage");
  EXPECT_FALSE(look(*upkeep));
  std::filesystem::remove(dir_.path() / "cert.pem");
  EXPECT_FALSE(look(*upkeep));
  EXPECT_EQ(shownBy(upkeep->context()), one_.certificatePem);
  write(other_, other_);
  EXPECT_TRUE(look(*upkeep));
}

TEST_F(OwnFilesTest, ThatAreNoGoodAreRefusedAtTheStart) {
  EXPECT_FALSE(CertificateUpkeep::open(files(), workers_, wallMs()));
  write(one_, other_);
  const auto foreign = CertificateUpkeep::open(files(), workers_, wallMs());
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("is not the key of"));
  write(one_, one_);
  const auto expired = CertificateUpkeep::open(files(), workers_, wallMs() + 91 * kDay);
  ASSERT_FALSE(expired);
  EXPECT_THAT(expired.error().message, HasSubstr("expired"));
}

}  // namespace
}  // namespace cay::hub
