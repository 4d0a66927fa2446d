#include "hub/trust_store.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "hub/certificates.h"

namespace cay::hub {
namespace {

// One block of a PEM text.
struct Block {
  Owned<char, [](char* text) { OPENSSL_free(text); }> kind;
  Owned<unsigned char, [](unsigned char* bytes) { OPENSSL_free(bytes); }> bytes;
  long size = 0;

  // False at the end of the text; a block that cannot be read has no bytes.
  bool next(BIO& from) {
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    const bool read = PEM_read_bio(&from, &name, &header, &data, &size) == 1;
    OPENSSL_free(header);
    kind.reset(name);
    bytes.reset(data);
    const bool ended = !read && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return !ended;
  }

  [[nodiscard]] CertificatePtr certificate() const {
    if (!bytes || std::string_view(kind.get()) != PEM_STRING_X509) return nullptr;
    const unsigned char* at = bytes.get();
    CertificatePtr certificate(d2i_X509(nullptr, &at, size));
    ERR_clear_error();
    return certificate;
  }
};

// Eight hex digits.
std::string subjectHash(X509& certificate) {
  std::array<char, 9> text;
  const auto hash = static_cast<uint32_t>(X509_subject_name_hash(&certificate));
  (void)std::snprintf(text.data(), text.size(), "%08x", hash);
  return text.data();
}

}  // namespace

std::vector<std::string> trustFiles() {
  std::vector<std::string> files;
  if (const char* chosen = std::getenv("SSL_CERT_FILE"); chosen != nullptr && *chosen != '\0') {
    files.emplace_back(chosen);
  }
  files.insert(files.end(), {"/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch, Alpine
                             "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL
                             "/etc/ssl/ca-bundle.pem",              // openSUSE
                             "/etc/ssl/cert.pem"});
  return files;
}

std::vector<std::string> certificatesIn(std::string_view text) {
  const BioPtr bio = readerOf(text);
  std::vector<std::string> found;
  for (Block block; block.next(*bio);) {
    const CertificatePtr certificate = block.certificate();
    if (!certificate) continue;
    if (auto pem = textOf(*certificate)) found.push_back(*std::move(pem));
  }
  return found;
}

Result<std::map<std::string, std::string>> hashedNames(
    const std::vector<std::string>& certificates) {
  std::map<std::string, std::string> names;
  for (const std::string& pem : certificates) {
    CAY_ASSIGN(const CertificatePtr certificate, readCertificate(pem));
    const std::string hash = subjectHash(*certificate);
    int number = 0;  // tells certificates of one subject apart
    while (names.contains(hash + "." + std::to_string(number))) ++number;
    names.emplace(hash + "." + std::to_string(number), pem);
  }
  return names;
}

}  // namespace cay::hub
