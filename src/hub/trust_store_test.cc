// What clients are given to trust: the bundle, the folder, and where their other certificates come
// from.
#include "hub/trust_store.h"

#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "hub/ca.h"
#include "hub/certificates.h"
#include "sys/file.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

namespace fs = std::filesystem;
using cay::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;

constexpr const char* kDomain = "cay.localhost";

std::string contentOf(const std::string& file) {
  return sys::readFile(file.c_str(), size_t{16} << 20).value_or("");
}

// The certificate of some CA.
std::string someCa() {
  const auto key = makeKey();
  return *textOf(**makeCaCertificate(**key, "example.org", wallMs()));
}

class TrustTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string own() const { return contentOf(ca_.caFile()); }
  std::string folder() { return (temp_.path() / "ca").string(); }
  std::vector<std::string> certificatesOfBundle(const std::vector<std::string>& trusted) {
    const auto bundle = ca_.bundle(trusted);
    if (!bundle) throw std::runtime_error(bundle.error().message);
    return certificatesIn(contentOf(*bundle));
  }

  TempDir temp_;
  Ca ca_ = *Ca::open((temp_.path() / "ca").string(), kDomain, wallMs());
  std::string first_ = someCa();
  std::string second_ = someCa();
};

TEST_F(TrustTest, TheBundleHasTheMachinesCertificatesAndOurs) {
  const std::string file = temp_.write("system.pem", "words\n" + first_ + "more words\n" + second_);
  EXPECT_THAT(certificatesOfBundle({file}), ElementsAre(own(), first_, second_));
  // The first file that has any.
  const std::string empty = temp_.write("empty.pem", "");
  const std::string other = temp_.write("other.pem", someCa());
  EXPECT_THAT(certificatesOfBundle({"/nowhere", empty, file, other}),
              ElementsAre(own(), first_, second_));
  EXPECT_THAT(certificatesOfBundle({}), ElementsAre(own()));
}

TEST_F(TrustTest, TheBundleIsOneThatOpensslReads) {
  const std::string broken = temp_.write(
      "system.pem", "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n" +
                        first_ + "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n" +
                        *textOf(**makeKey()) + second_ + "-----BEGIN CERTIFICATE-----\nQUJD");
  EXPECT_THAT(certificatesOfBundle({broken}), ElementsAre(own(), first_, second_));
  EXPECT_THAT(contentOf(*ca_.bundle({broken})), ::testing::Not(HasSubstr("PRIVATE")));
  const SslContextPtr context(SSL_CTX_new(TLS_client_method()));
  EXPECT_EQ(SSL_CTX_load_verify_file(context.get(), (folder() + "/bundle.pem").c_str()), 1);
}

TEST_F(TrustTest, TheBundleIsWrittenWhenSomethingChangedOnly) {
  const std::string file = temp_.write("system.pem", first_);
  const auto inode = [&] { return sys::statAt(AT_FDCWD, ca_.bundle({file})->c_str())->st_ino; };
  const auto before = inode();
  EXPECT_EQ(inode(), before);
  (void)temp_.write("system.pem", second_);
  EXPECT_NE(inode(), before);
  EXPECT_THAT(certificatesOfBundle({file}), ElementsAre(own(), second_));
}

TEST_F(TrustTest, AHubStartedWithItsOwnBundleKeepsWhatWasTrustedBefore) {
  const std::string chosen = temp_.write("chosen.pem", first_);
  const std::string system = temp_.write("system.pem", second_);
  const std::string bundle = *ca_.bundle({chosen, system});
  EXPECT_THAT(certificatesOfBundle({bundle, system}), ElementsAre(own(), first_));
  fs::create_symlink(bundle, temp_.path() / "link");
  EXPECT_THAT(certificatesOfBundle({(temp_.path() / "link").string(), system}),
              ElementsAre(own(), first_));
  // And sees what changes there.
  (void)temp_.write("chosen.pem", second_ + first_);
  EXPECT_THAT(certificatesOfBundle({bundle, system}), ElementsAre(own(), second_, first_));
  fs::remove(chosen);
  EXPECT_THAT(certificatesOfBundle({bundle, system}), ElementsAre(own(), second_));
}

TEST_F(TrustTest, OurOwnIsInItOnce) {
  const std::string file = temp_.write("system.pem", own() + first_ + own());
  EXPECT_THAT(certificatesOfBundle({file}), ElementsAre(own(), first_));
}

TEST_F(TrustTest, TheFolderServesOpenssl) {
  const std::string file = temp_.write("system.pem", first_ + second_);
  const auto hashed = ca_.hashedFolder({file});
  ASSERT_TRUE(hashed);
  EXPECT_EQ(std::distance(fs::directory_iterator(*hashed), {}), 3);
  const auto leaf = ca_.leaf(wallMs());
  const auto certificate = readCertificate(leaf->certificatePem);
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  ASSERT_EQ(X509_STORE_load_path(store.get(), hashed->c_str()), 1);
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate->get(), nullptr);
  EXPECT_EQ(X509_verify_cert(context.get()), 1);
}

TEST_F(TrustTest, TheFolderHoldsWhatIsTrustedNow) {
  const auto names = [&](const std::string& file) {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(*ca_.hashedFolder({file}))) {
      found.push_back(contentOf(entry.path().string()));
    }
    return found;
  };
  const std::string file = temp_.write("system.pem", first_);
  EXPECT_THAT(names(file), ::testing::UnorderedElementsAre(own(), first_));
  (void)temp_.write("system.pem", second_);
  std::ofstream(folder() + "/hashed/stranger") << "x";
  EXPECT_THAT(names(file), ::testing::UnorderedElementsAre(own(), second_));
}

TEST(HashedNames, CountCertificatesOfOneSubject) {
  const auto key = makeKey();
  const auto ca = makeCaCertificate(**key, "example.org", wallMs());
  // A leaf of each of two keys: both are called "Cay hub".
  const std::string one = *textOf(**makeLeafCertificate(**key, **ca, **key, "a.b", wallMs()));
  const std::string two = *textOf(**makeLeafCertificate(**key, **ca, **key, "a.b", wallMs()));
  const auto names = hashedNames({one, two});
  ASSERT_TRUE(names);
  ASSERT_EQ(names->size(), 2U);
  const std::string name = names->begin()->first;
  EXPECT_EQ(name.size(), 10U);
  EXPECT_EQ(names->at(name.substr(0, 8) + ".0"), one);
  EXPECT_EQ(names->at(name.substr(0, 8) + ".1"), two);
}

TEST(TrustFiles, BeginWithTheUsersChoice) {
  const char* before = std::getenv("SSL_CERT_FILE");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("SSL_CERT_FILE", "/chosen.pem", 1);
  EXPECT_EQ(trustFiles().front(), "/chosen.pem");
  EXPECT_THAT(trustFiles(), IsSupersetOf({"/etc/ssl/certs/ca-certificates.crt"}));
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_THAT(trustFiles().front(), StartsWith("/etc/"));
  ::setenv("SSL_CERT_FILE", "", 1);
  EXPECT_THAT(trustFiles().front(), StartsWith("/etc/"));
  if (before == nullptr) {
    ::unsetenv("SSL_CERT_FILE");
  } else {
    ::setenv("SSL_CERT_FILE", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace cay::hub
