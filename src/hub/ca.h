// The private CA and the certificate of this hub: files of a folder, made at first use.
//
//   ca.key, ca.pem   the CA, for 10 years
//   leaf.pem         key and certificate of the hub
//   bundle.pem       for SSL_CERT_FILE: what the machine trusts, and this CA
//   hashed/          for SSL_CERT_DIR: the same, one file for each
//
// Blocking; several processes may use one folder.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hub/trust_store.h"

namespace cay::hub {

// What a server shows: its certificate, further ones up to its CA behind it, and its key.
struct Certificate {
  std::string certificatePem;
  std::string keyPem;
  int64_t expiresMs = 0;
};

class Ca {
 public:
  // kConflict, with what to do about it, if the folder has a CA of another domain or one whose key
  // is missing, foreign or readable by others. kInvalid for a domain that no wildcard certificate
  // can be for.
  static Result<Ca> open(const std::string& folder, const std::string& domain, int64_t nowMs);

  // For `domain` and *.domain; the same again until less than 30 days of it are left, then a new
  // one with a new key.
  Result<Certificate> leaf(int64_t nowMs);

  [[nodiscard]] std::string caFile() const { return folder_ + "/ca.pem"; }
  // The bundle's path; written if the first of `trusted` that has certificates has changed.
  Result<std::string> bundle(const std::vector<std::string>& trusted = trustFiles());
  // The folder's path, likewise.
  Result<std::string> hashedFolder(const std::vector<std::string>& trusted = trustFiles());

 private:
  Ca(std::string folder, std::string domain)
      : folder_(std::move(folder)), domain_(std::move(domain)) {}

  std::string folder_;
  std::string domain_;
};

}  // namespace cay::hub
