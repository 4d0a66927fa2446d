#include "hub/ca.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "hub/certificates.h"
#include "hub/private_folder.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::hub {
namespace {

constexpr const char* kCaKey = "ca.key";
constexpr const char* kCaCertificate = "ca.pem";
constexpr const char* kLeaf = "leaf.pem";
constexpr const char* kBundle = "bundle.pem";
constexpr const char* kHashed = "hashed";
constexpr mode_t kSecretMode = 0600;
constexpr mode_t kPublicMode = 0644;
using Lasts = PrivateFolder::Lasts;

constexpr int64_t kRenewedBeforeMs = int64_t{30} * 24 * 3600 * 1000;
constexpr size_t kMostTrustBytes = size_t{16} << 20;
// The longest domain that leaves room for a label in front of it.
constexpr size_t kMostDomainLength = 253 - 64;
// Begins the bundle's first line, which ends with the path of what it was made from.
constexpr std::string_view kMadeFrom = "# A Cay hub's private CA, and the certificates of ";

bool isLabel(std::string_view label) {
  const auto isLetter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, isLetter);
}

// Clients refuse wildcards for a name of a single label, such as *.localhost.
bool isDomain(std::string_view domain) {
  const auto labels = split(domain, '.');
  return domain.size() <= kMostDomainLength && labels.size() >= 2 &&
         std::ranges::all_of(labels, isLabel);
}

struct Authority {
  CertificatePtr certificate;
  KeyPtr key;
};

std::unexpected<Error> conflict(const std::string& what) {
  return fail(Code::kConflict, what + "; move the folder away to have a new CA made");
}

Result<Authority> readAuthority(const PrivateFolder& folder, std::string_view certificateText,
                                const std::string& domain) {
  auto certificate = readCertificate(certificateText);
  if (!certificate) return conflict("the CA's certificate cannot be read");
  if (!isCaOf(**certificate, domain)) {
    return conflict("the CA is not one of a hub for the domain " + quoted(domain));
  }
  CAY_ASSIGN(const auto keyText, folder.readSecret(kCaKey));
  if (!keyText) return conflict("the CA's key is missing");
  auto key = readKey(*keyText);
  if (!key || !belongTogether(**certificate, **key)) {
    return conflict("the CA's key is not that of its certificate");
  }
  return Authority{*std::move(certificate), *std::move(key)};
}

// The key is on the disk before the certificate: a certificate that people may have come to trust
// always has one.
Result<Authority> makeAuthority(PrivateFolder& folder, const std::string& domain, int64_t nowMs) {
  CAY_ASSIGN(KeyPtr key, makeKey());
  CAY_ASSIGN(const std::string keyText, textOf(*key));
  CAY_ASSIGN(CertificatePtr certificate, makeCaCertificate(*key, domain, nowMs));
  CAY_ASSIGN(const std::string certificateText, textOf(*certificate));
  CAY_TRY(folder.write(kCaKey, keyText, kSecretMode, Lasts::kForever));
  CAY_TRY(folder.write(kCaCertificate, certificateText, kPublicMode, Lasts::kForever));
  return Authority{std::move(certificate), std::move(key)};
}

Result<Authority> authority(PrivateFolder& folder, const std::string& domain, int64_t nowMs) {
  CAY_ASSIGN(const auto text, folder.read(kCaCertificate));
  if (text) return readAuthority(folder, *text, domain);
  return makeAuthority(folder, domain, nowMs);
}

// The certificate that is there, if it is good for longer.
std::optional<Certificate> currentLeaf(const PrivateFolder& folder, const Authority& ca,
                                       const std::string& domain, int64_t nowMs) {
  const auto text = folder.readSecret(kLeaf);
  if (!text || !*text) return std::nullopt;
  const auto certificate = readCertificate(**text);
  const auto key = readKey(**text);
  if (!certificate || !key || !belongTogether(**certificate, **key)) return std::nullopt;
  if (!isLeafOf(**certificate, *ca.certificate, domain)) return std::nullopt;
  const int64_t until = expiresMs(**certificate);
  // A new one would end no later where the CA itself ends soon.
  const int64_t needed = std::min(nowMs + kRenewedBeforeMs, expiresMs(*ca.certificate));
  if (beginsMs(**certificate) > nowMs || until < needed) return std::nullopt;
  auto certificateText = textOf(**certificate);
  auto keyText = textOf(**key);
  if (!certificateText || !keyText) return std::nullopt;
  return Certificate{*std::move(certificateText), *std::move(keyText), until};
}

Result<Certificate> makeLeaf(PrivateFolder& folder, const Authority& ca, const std::string& domain,
                             int64_t nowMs) {
  CAY_ASSIGN(const KeyPtr key, makeKey());
  CAY_ASSIGN(const CertificatePtr certificate,
             makeLeafCertificate(*key, *ca.certificate, *ca.key, domain, nowMs));
  Certificate leaf;
  leaf.expiresMs = expiresMs(*certificate);
  CAY_ASSIGN(leaf.keyPem, textOf(*key));
  CAY_ASSIGN(leaf.certificatePem, textOf(*certificate));
  CAY_TRY(folder.write(kLeaf, leaf.keyPem + leaf.certificatePem, kSecretMode, Lasts::kForever));
  return leaf;
}

// What the bundle was made from. A hub that is started where SSL_CERT_FILE names its own bundle
// must still find the certificates that it named before.
std::optional<std::string> originOf(const std::optional<std::string>& bundle) {
  if (!bundle || !bundle->starts_with(kMadeFrom)) return std::nullopt;
  std::string path = bundle->substr(kMadeFrom.size(), bundle->find('\n') - kMadeFrom.size());
  if (!path.starts_with('/')) return std::nullopt;
  return path;
}

bool isSameFile(const std::string& a, const std::string& b) {
  const auto first = sys::statAt(AT_FDCWD, a.c_str(), 0);
  const auto second = sys::statAt(AT_FDCWD, b.c_str(), 0);
  return first && second && first->st_dev == second->st_dev && first->st_ino == second->st_ino;
}

struct Trust {
  std::string origin;
  std::vector<std::string> certificates;  // this CA is the first
};

Result<Trust> collectTrust(const PrivateFolder& folder, const std::string& path,
                           const std::vector<std::string>& trusted) {
  CAY_ASSIGN(const auto own, folder.read(kCaCertificate));
  if (!own) return fail(Code::kNotFound, "the CA's certificate is gone");
  CAY_ASSIGN(const auto bundle, folder.read(kBundle));
  const auto origin = originOf(bundle);
  Trust trust{.origin = "nowhere else", .certificates = certificatesIn(*own)};
  for (std::string file : trusted) {
    if (isSameFile(file, path + "/" + kBundle)) {
      if (!origin) continue;
      file = *origin;
    }
    const auto text = sys::readFile(file.c_str(), kMostTrustBytes);
    if (!text) continue;
    std::vector<std::string> found = certificatesIn(*text);
    std::erase_if(found, [&](const auto& pem) { return pem == trust.certificates.front(); });
    if (found.empty()) continue;
    trust.origin = file;
    trust.certificates.insert(trust.certificates.end(), found.begin(), found.end());
    break;
  }
  return trust;
}

Result<> writeIfChanged(PrivateFolder& folder, const std::string& name, std::string_view text) {
  CAY_ASSIGN(const auto present, folder.read(name));
  if (present && *present == text) return {};
  return folder.write(name, text, kPublicMode, Lasts::kUntilPowerFails);
}

}  // namespace

Result<Ca> Ca::open(const std::string& folder, const std::string& domain, int64_t nowMs) {
  if (!isDomain(domain)) {
    return fail(Code::kInvalid, "the domain " + quoted(domain) +
                                    " must be two or more names of lower-case letters, digits and "
                                    "dashes, separated by dots");
  }
  CAY_ASSIGN(PrivateFolder files, PrivateFolder::open(folder));
  if (auto found = authority(files, domain, nowMs); !found) {
    return std::unexpected(std::move(found).error().wrap(quoted(folder)));
  }
  return Ca(folder, domain);
}

Result<Certificate> Ca::leaf(int64_t nowMs) {
  CAY_ASSIGN(PrivateFolder files, PrivateFolder::open(folder_));
  CAY_ASSIGN(const Authority ca, authority(files, domain_, nowMs));
  if (expiresMs(*ca.certificate) <= nowMs) return conflict("the CA has expired");
  if (auto current = currentLeaf(files, ca, domain_, nowMs)) return *std::move(current);
  return makeLeaf(files, ca, domain_, nowMs);
}

Result<std::string> Ca::bundle(const std::vector<std::string>& trusted) {
  CAY_ASSIGN(PrivateFolder files, PrivateFolder::open(folder_));
  CAY_ASSIGN(const Trust trust, collectTrust(files, folder_, trusted));
  std::string text = std::string(kMadeFrom) + trust.origin + "\n";
  for (const std::string& certificate : trust.certificates) text += certificate;
  CAY_TRY(writeIfChanged(files, kBundle, text));
  return folder_ + "/" + kBundle;
}

Result<std::string> Ca::hashedFolder(const std::vector<std::string>& trusted) {
  CAY_ASSIGN(const PrivateFolder files, PrivateFolder::open(folder_));
  CAY_ASSIGN(const Trust trust, collectTrust(files, folder_, trusted));
  CAY_ASSIGN(const auto wanted, hashedNames(trust.certificates));
  std::string path = folder_ + "/" + kHashed;
  CAY_ASSIGN(PrivateFolder hashed, PrivateFolder::open(path));
  for (const auto& [name, text] : wanted) CAY_TRY(writeIfChanged(hashed, name, text));
  CAY_ASSIGN(const auto present, hashed.names());
  // Last, so that whoever looks meanwhile finds all that stay.
  for (const std::string& name : present) {
    if (!wanted.contains(name)) CAY_TRY(hashed.remove(name));
  }
  return path;
}

}  // namespace cay::hub
