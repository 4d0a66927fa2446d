#include "hub/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>

#include "base/ids.h"

namespace cay::hub {
namespace {

constexpr int64_t kDayMs = int64_t{24} * 3600 * 1000;
constexpr int64_t kBackdatedMs = kDayMs;
constexpr int64_t kCaMs = 3650 * kDayMs;
constexpr int64_t kLeafMs = 90 * kDayMs;

struct Span {
  int64_t fromMs;
  int64_t untilMs;
};

struct Extension {
  int id;
  std::string value;  // in the notation of OpenSSL's configuration files
};

Result<TimePtr> timeOf(int64_t ms) {
  TimePtr time(ASN1_TIME_set(nullptr, static_cast<time_t>(ms / 1000)));
  if (!time) return failOpenssl("ASN1_TIME_set");
  return time;
}

int64_t msOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return int64_t{::timegm(&parts)} * 1000;
}

// Random, so that no two certificates of one issuer are ever confused; 124 bits, positive.
Result<> setSerial(X509& certificate) {
  BIGNUM* raw = nullptr;
  if (BN_hex2bn(&raw, ("4" + randomHex(15)).c_str()) == 0) return failOpenssl("BN_hex2bn");
  const BigNumberPtr number(raw);
  const IntegerPtr serial(BN_to_ASN1_INTEGER(number.get(), nullptr));
  if (!serial || X509_set_serialNumber(&certificate, serial.get()) != 1) {
    return failOpenssl("set the serial number");
  }
  return {};
}

Result<> setSubject(X509& certificate, const std::string& commonName) {
  X509_NAME* name = X509_get_subject_name(&certificate);
  const auto* text = reinterpret_cast<const unsigned char*>(commonName.c_str());
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) != 1) {
    return failOpenssl("set the subject");
  }
  return {};
}

Result<> addExtensions(X509& certificate, X509& issuer, const std::vector<Extension>& extensions) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  for (const auto& [id, value] : extensions) {
    const ExtensionPtr extension(X509V3_EXT_nconf_nid(nullptr, &context, id, value.c_str()));
    if (!extension || X509_add_ext(&certificate, extension.get(), -1) != 1) {
      return failOpenssl("add the extension " + std::string(OBJ_nid2sn(id)));
    }
  }
  return {};
}

// Everything but issuer, extensions and signature.
Result<CertificatePtr> begin(EVP_PKEY& key, const std::string& commonName, Span span) {
  CertificatePtr certificate(X509_new());
  if (!certificate) return failOpenssl("X509_new");
  CAY_ASSIGN(const TimePtr from, timeOf(span.fromMs));
  CAY_ASSIGN(const TimePtr until, timeOf(span.untilMs));
  if (X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      X509_set1_notBefore(certificate.get(), from.get()) != 1 ||
      X509_set1_notAfter(certificate.get(), until.get()) != 1 ||
      X509_set_pubkey(certificate.get(), &key) != 1) {
    return failOpenssl("begin a certificate");
  }
  CAY_TRY(setSerial(*certificate));
  CAY_TRY(setSubject(*certificate, commonName));
  return certificate;
}

Result<> finish(X509& certificate, X509& issuer, EVP_PKEY& issuerKey,
                const std::vector<Extension>& extensions) {
  if (X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) != 1) {
    return failOpenssl("set the issuer");
  }
  CAY_TRY(addExtensions(certificate, issuer, extensions));
  if (X509_sign(&certificate, &issuerKey, EVP_sha256()) == 0) return failOpenssl("sign");
  return {};
}

Result<BioPtr> writer() {
  BioPtr bio(BIO_new(BIO_s_mem()));
  if (!bio) return failOpenssl("BIO_new");
  return bio;
}

std::string written(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return {data, static_cast<size_t>(size)};
}

std::string_view textIn(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<size_t>(ASN1_STRING_length(string))};
}

}  // namespace

Result<KeyPtr> makeKey() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return failOpenssl("make a key");
  return key;
}

Result<CertificatePtr> makeCaCertificate(EVP_PKEY& key, const std::string& domain, int64_t nowMs) {
  // A name of its own: clients that trust several hubs look for the issuer by its name.
  CAY_ASSIGN(CertificatePtr ca, begin(key, "Cay private CA " + randomHex(4),
                                      {.fromMs = nowMs - kBackdatedMs, .untilMs = nowMs + kCaMs}));
  CAY_TRY(finish(*ca, *ca, key,
                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                  {NID_subject_key_identifier, "hash"},
                  {NID_name_constraints, "critical,permitted;DNS:" + domain}}));
  return ca;
}

Result<CertificatePtr> makeLeafCertificate(EVP_PKEY& key, X509& ca, EVP_PKEY& caKey,
                                           const std::string& domain, int64_t nowMs) {
  const Span span{.fromMs = nowMs - kBackdatedMs,
                  .untilMs = std::min(nowMs + kLeafMs, expiresMs(ca))};
  CAY_ASSIGN(CertificatePtr leaf, begin(key, "Cay hub", span));
  CAY_TRY(finish(*leaf, ca, caKey,
                 {{NID_basic_constraints, "critical,CA:FALSE"},
                  {NID_key_usage, "critical,digitalSignature"},
                  {NID_ext_key_usage, "serverAuth"},
                  {NID_subject_key_identifier, "hash"},
                  {NID_authority_key_identifier, "keyid:always"},
                  {NID_subject_alt_name, "DNS:*." + domain + ",DNS:" + domain}}));
  return leaf;
}

Result<std::string> textOf(const X509& certificate) {
  CAY_ASSIGN(const BioPtr bio, writer());
  if (PEM_write_bio_X509(bio.get(), &certificate) != 1) return failOpenssl("write a certificate");
  return written(*bio);
}

Result<std::string> textOf(const EVP_PKEY& key) {
  CAY_ASSIGN(const BioPtr bio, writer());
  if (PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failOpenssl("write a key");
  }
  return written(*bio);
}

Result<CertificatePtr> readCertificate(std::string_view text) {
  const BioPtr bio = readerOf(text);
  CertificatePtr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) return failOpenssl("read a certificate");
  return certificate;
}

Result<KeyPtr> readKey(std::string_view text) {
  const BioPtr bio = readerOf(text);
  // An empty password instead of the default, which would ask at the terminal.
  std::string none;
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, none.data()));
  if (!key) return failOpenssl("read a key");
  return key;
}

int64_t beginsMs(const X509& certificate) {
  return msOf(X509_get0_notBefore(&certificate));
}

int64_t expiresMs(const X509& certificate) {
  return msOf(X509_get0_notAfter(&certificate));
}

bool belongTogether(const X509& certificate, const EVP_PKEY& key) {
  const bool same = X509_check_private_key(&certificate, &key) == 1;
  ERR_clear_error();
  return same;
}

bool isCaOf(X509& certificate, std::string_view domain) {
  if (X509_check_ca(&certificate) != 1) return false;
  const NameConstraintsPtr names(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(&certificate, NID_name_constraints, nullptr, nullptr)));
  if (!names || names->excludedSubtrees != nullptr ||
      sk_GENERAL_SUBTREE_num(names->permittedSubtrees) != 1) {
    return false;
  }
  const GENERAL_NAME* only = sk_GENERAL_SUBTREE_value(names->permittedSubtrees, 0)->base;
  return only->type == GEN_DNS && textIn(only->d.dNSName) == domain;
}

bool isLeafOf(X509& certificate, X509& ca, const std::string& domain) {
  const bool fits = X509_check_issued(&ca, &certificate) == X509_V_OK &&
                    X509_verify(&certificate, X509_get0_pubkey(&ca)) == 1 &&
                    X509_check_host(&certificate, domain.data(), domain.size(), 0, nullptr) == 1 &&
                    X509_check_host(&certificate, ("any." + domain).c_str(), 0, 0, nullptr) == 1;
  ERR_clear_error();
  return fits;
}

}  // namespace cay::hub
