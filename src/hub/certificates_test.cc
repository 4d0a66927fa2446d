#include "hub/certificates.h"

#include <gmock/gmock.h>
#include <openssl/core_names.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <set>

#include "base/clock.h"

namespace cay::hub {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kDayMs = int64_t{24} * 3600 * 1000;
const std::string kDomain = "cay.localhost";

struct Seen {
  std::string name;
  bool critical;
  std::string value;
  bool operator==(const Seen&) const = default;
  friend void PrintTo(const Seen& seen, std::ostream* out) {
    *out << seen.name << (seen.critical ? " critical " : " ") << seen.value;
  }
};

std::string textIn(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return {data, static_cast<size_t>(size)};
}

// In the order of the certificate, values as OpenSSL prints them.
std::vector<Seen> extensionsOf(const X509& certificate) {
  std::vector<Seen> seen;
  for (int i = 0; i < X509_get_ext_count(&certificate); ++i) {
    X509_EXTENSION* extension = X509_get_ext(&certificate, i);
    const BioPtr bio(BIO_new(BIO_s_mem()));
    X509V3_EXT_print(bio.get(), extension, 0, 0);
    seen.push_back({OBJ_nid2sn(OBJ_obj2nid(X509_EXTENSION_get_object(extension))),
                    X509_EXTENSION_get_critical(extension) == 1, textIn(*bio)});
  }
  return seen;
}

std::string hexOf(const ASN1_OCTET_STRING* id) {
  std::string hex;
  for (int i = 0; i < ASN1_STRING_length(id); ++i) {
    const char* digits = "0123456789ABCDEF";
    const unsigned char byte = ASN1_STRING_get0_data(id)[i];
    hex.append(i == 0 ? "" : ":").append({digits[byte >> 4U], digits[byte & 15U]});
  }
  return hex;
}

// OpenSSL's verdict on the leaf as Python 3.13 asks for it; "ok" if it is content.
std::string strictVerdict(X509& leaf, X509& ca, const std::string& host, int64_t atMs) {
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), &ca);
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), &leaf, nullptr);
  X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT | X509_V_FLAG_PARTIAL_CHAIN);
  X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_time(wanted, atMs / 1000);
  X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
  if (X509_verify_cert(context.get()) == 1) return "ok";
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

class CertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(caKey_ && leafKey_);
    ca_ = *makeCaCertificate(**caKey_, kDomain, now_);
    leaf_ = *makeLeafCertificate(**leafKey_, *ca_, **caKey_, kDomain, now_);
  }
  CertificatePtr leafFor(const std::string& domain) {
    return *makeLeafCertificate(**leafKey_, *ca_, **caKey_, domain, now_);
  }

  int64_t now_ = wallMs();
  Result<KeyPtr> caKey_ = makeKey();
  Result<KeyPtr> leafKey_ = makeKey();
  CertificatePtr ca_;
  CertificatePtr leaf_;
};

TEST_F(CertificatesTest, TheCaHasExactlyTheProfile) {
  const std::string id = hexOf(X509_get0_subject_key_id(ca_.get()));
  EXPECT_EQ(id.size(), 59U);
  EXPECT_THAT(extensionsOf(*ca_),
              ElementsAre(Seen{"basicConstraints", true, "CA:TRUE, pathlen:0"},
                          Seen{"keyUsage", true, "Certificate Sign, CRL Sign"},
                          Seen{"subjectKeyIdentifier", false, id},
                          Seen{"nameConstraints", true, "Permitted:\n  DNS:cay.localhost"}));
  EXPECT_EQ(X509_get_version(ca_.get()), X509_VERSION_3);
  EXPECT_EQ(X509_NAME_cmp(X509_get_subject_name(ca_.get()), X509_get_issuer_name(ca_.get())), 0);
}

TEST_F(CertificatesTest, TheLeafHasExactlyTheProfile) {
  const std::string id = hexOf(X509_get0_subject_key_id(leaf_.get()));
  const std::string caId = hexOf(X509_get0_subject_key_id(ca_.get()));
  EXPECT_NE(id, caId);
  EXPECT_THAT(extensionsOf(*leaf_),
              ElementsAre(Seen{"basicConstraints", true, "CA:FALSE"},
                          Seen{"keyUsage", true, "Digital Signature"},
                          Seen{"extendedKeyUsage", false, "TLS Web Server Authentication"},
                          Seen{"subjectKeyIdentifier", false, id},
                          Seen{"authorityKeyIdentifier", false, caId},
                          Seen{"subjectAltName", false, "DNS:*.cay.localhost, DNS:cay.localhost"}));
  EXPECT_EQ(X509_get_version(leaf_.get()), X509_VERSION_3);
  EXPECT_GT(X509_NAME_entry_count(X509_get_subject_name(leaf_.get())), 0);
}

TEST_F(CertificatesTest, KeysAreP256AndSignaturesSha256) {
  for (const KeyPtr* key : {&*caKey_, &*leafKey_}) {
    char group[32] = "";
    EXPECT_EQ(EVP_PKEY_get_utf8_string_param(key->get(), OSSL_PKEY_PARAM_GROUP_NAME, group,
                                             sizeof group, nullptr),
              1);
    EXPECT_STREQ(group, "prime256v1");
  }
  EXPECT_EQ(X509_get_signature_nid(ca_.get()), NID_ecdsa_with_SHA256);
  EXPECT_EQ(X509_get_signature_nid(leaf_.get()), NID_ecdsa_with_SHA256);
}

TEST_F(CertificatesTest, SerialNumbersArePositiveAndNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 50; ++i) {
    const CertificatePtr leaf = leafFor(kDomain);
    const ASN1_INTEGER* serial = X509_get0_serialNumber(leaf.get());
    EXPECT_EQ(ASN1_STRING_type(serial), V_ASN1_INTEGER);  // a negative one has another type
    EXPECT_EQ(ASN1_STRING_length(serial), 16);
    seen.insert(hexOf(serial));
  }
  EXPECT_EQ(seen.size(), 50U);
  // Two CAs of one domain have names of their own.
  const auto other = makeCaCertificate(**caKey_, kDomain, now_);
  EXPECT_NE(X509_NAME_cmp(X509_get_subject_name(ca_.get()), X509_get_subject_name(other->get())),
            0);
}

TEST_F(CertificatesTest, LastAsLongAsTheyShould) {
  EXPECT_EQ(beginsMs(*ca_), now_ / 1000 * 1000 - kDayMs);
  EXPECT_EQ(expiresMs(*ca_), now_ / 1000 * 1000 + 3650 * kDayMs);
  EXPECT_EQ(beginsMs(*leaf_), now_ / 1000 * 1000 - kDayMs);
  EXPECT_EQ(expiresMs(*leaf_), now_ / 1000 * 1000 + 90 * kDayMs);
  // Beyond the years that the short form of a date can tell.
  const int64_t far = int64_t{2045} * 365 * kDayMs - int64_t{1970} * 365 * kDayMs;
  const auto late = makeCaCertificate(**caKey_, kDomain, far);
  EXPECT_EQ(expiresMs(**late), far + 3650 * kDayMs);
}

TEST_F(CertificatesTest, PassStrictVerification) {
  for (const char* host : {"cay.localhost", "abc--8000.cay.localhost", "ABC.Cay.Localhost"}) {
    EXPECT_EQ(strictVerdict(*leaf_, *ca_, host, now_), "ok") << host;
  }
  EXPECT_EQ(strictVerdict(*leaf_, *ca_, "a.cay.localhost", now_ + 89 * kDayMs), "ok");
  EXPECT_EQ(strictVerdict(*leaf_, *ca_, "a.cay.localhost", now_ - kDayMs / 2), "ok");
}

TEST_F(CertificatesTest, AreGoodForNothingElse) {
  for (const char* host :
       {"localhost", "a.b.cay.localhost", "cay.localhost.evil.com", "evil.com"}) {
    EXPECT_EQ(strictVerdict(*leaf_, *ca_, host, now_), "hostname mismatch") << host;
  }
  EXPECT_EQ(strictVerdict(*leaf_, *ca_, kDomain, now_ + 91 * kDayMs), "certificate has expired");
  EXPECT_EQ(strictVerdict(*leaf_, *ca_, kDomain, now_ - 2 * kDayMs),
            "certificate is not yet valid");
  // The CA's key does not help whoever steals it against other names.
  for (const char* domain : {"example.com", "localhost", "xcay.localhost"}) {
    const CertificatePtr foreign = leafFor(domain);
    EXPECT_EQ(strictVerdict(*foreign, *ca_, domain, now_), "permitted subtree violation") << domain;
  }
  const auto other = makeCaCertificate(**makeKey(), kDomain, now_);
  EXPECT_THAT(strictVerdict(*leaf_, **other, kDomain, now_), HasSubstr("unable to get"));
}

TEST_F(CertificatesTest, ComeBackFromText) {
  const auto text = textOf(*ca_);
  const auto key = textOf(**caKey_);
  ASSERT_TRUE(text && key);
  EXPECT_THAT(*text, StartsWith("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_THAT(*key, StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  const auto again = readCertificate(*key + *text);
  const auto keyAgain = readKey(*text + *key);
  ASSERT_TRUE(again && keyAgain);
  EXPECT_EQ(X509_cmp(again->get(), ca_.get()), 0);
  EXPECT_TRUE(belongTogether(**again, **keyAgain));
  EXPECT_FALSE(belongTogether(**again, **leafKey_));
  EXPECT_FALSE(readCertificate(*key));
  EXPECT_FALSE(readKey(*text));
  EXPECT_FALSE(readKey(""));
}

TEST_F(CertificatesTest, AnEncryptedKeyIsRefusedInsteadOfAskedFor) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  ASSERT_EQ(PEM_write_bio_PrivateKey(bio.get(), leafKey_->get(), EVP_aes_128_cbc(), nullptr, 0,
                                     nullptr, const_cast<char*>("secret")),
            1);
  EXPECT_FALSE(readKey(textIn(*bio)));
}

TEST_F(CertificatesTest, KnowTheirOwn) {
  EXPECT_TRUE(isCaOf(*ca_, kDomain));
  EXPECT_FALSE(isCaOf(*ca_, "localhost"));
  EXPECT_FALSE(isCaOf(*ca_, "a.cay.localhost"));
  EXPECT_FALSE(isCaOf(*leaf_, kDomain));
  EXPECT_TRUE(isLeafOf(*leaf_, *ca_, kDomain));
  EXPECT_FALSE(isLeafOf(*leaf_, *ca_, "example.org"));
  EXPECT_FALSE(isLeafOf(*ca_, *ca_, kDomain));
  // One with the CA's name but not its signature.
  const auto forged = makeLeafCertificate(**leafKey_, *ca_, **leafKey_, kDomain, now_);
  EXPECT_FALSE(isLeafOf(**forged, *ca_, kDomain));
}

}  // namespace
}  // namespace cay::hub
