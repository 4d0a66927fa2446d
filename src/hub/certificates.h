// Certificates of the private CA in memory: made, written as text and judged. The profile is what
// OpenSSL's X509_STRICT demands, since that is the default of Python 3.13 and newer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hub/openssl.h"

namespace cay::hub {

// A new P-256 key.
Result<KeyPtr> makeKey();

// Certificates begin a day in the past, for clients whose clocks are behind.
//
// 10 years. It can speak for `domain` and names below it only, and can make no further CAs.
Result<CertificatePtr> makeCaCertificate(EVP_PKEY& key, const std::string& domain, int64_t nowMs);
// 90 days, but not longer than the CA; for `domain` and the names one step below it.
Result<CertificatePtr> makeLeafCertificate(EVP_PKEY& key, X509& ca, EVP_PKEY& caKey,
                                           const std::string& domain, int64_t nowMs);

// As PEM. The key's is not encrypted.
Result<std::string> textOf(const X509& certificate);
Result<std::string> textOf(const EVP_PKEY& key);
// The first of its kind in the text.
Result<CertificatePtr> readCertificate(std::string_view text);
Result<KeyPtr> readKey(std::string_view text);

int64_t beginsMs(const X509& certificate);
int64_t expiresMs(const X509& certificate);
bool belongTogether(const X509& certificate, const EVP_PKEY& key);
// True for what makeCaCertificate makes for the domain.
bool isCaOf(X509& certificate, std::string_view domain);
// True for what makeLeafCertificate makes for the domain with this CA, whenever it was.
bool isLeafOf(X509& certificate, X509& ca, const std::string& domain);

}  // namespace cay::hub
