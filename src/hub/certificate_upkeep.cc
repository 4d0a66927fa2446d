#include "hub/certificate_upkeep.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "hub/certificates.h"
#include "net/event.h"
#include "sys/io.h"

namespace cay::hub {
namespace {

constexpr Millis kBetweenLooks{30'000};
constexpr size_t kMostPemBytes = size_t{1} << 20;

Result<Certificate> readFiles(const std::string& certificateFile, const std::string& keyFile,
                              int64_t nowMs) {
  Certificate certificate;
  CAY_ASSIGN(certificate.certificatePem, sys::readFile(certificateFile.c_str(), kMostPemBytes));
  CAY_ASSIGN(certificate.keyPem, sys::readFile(keyFile.c_str(), kMostPemBytes));
  auto first = readCertificate(certificate.certificatePem);
  if (!first) return std::unexpected(std::move(first).error().wrap(quoted(certificateFile)));
  auto key = readKey(certificate.keyPem);
  if (!key) return std::unexpected(std::move(key).error().wrap(quoted(keyFile)));
  if (!belongTogether(**first, **key)) {
    return fail(Code::kInvalid,
                quoted(keyFile) + " is not the key of the certificate " + quoted(certificateFile));
  }
  certificate.expiresMs = expiresMs(**first);
  if (certificate.expiresMs <= nowMs) {
    return fail(Code::kInvalid, "the certificate " + quoted(certificateFile) + " has expired");
  }
  return certificate;
}

}  // namespace

CertificateSource fromCa(Ca ca) {
  const auto shared = std::make_shared<Ca>(std::move(ca));
  return [shared](int64_t nowMs) { return shared->leaf(nowMs); };
}

CertificateSource fromFiles(std::string certificateFile, std::string keyFile) {
  return [certificate = std::move(certificateFile), key = std::move(keyFile)](int64_t nowMs) {
    return readFiles(certificate, key, nowMs);
  };
}

Result<std::unique_ptr<CertificateUpkeep>> CertificateUpkeep::open(CertificateSource source,
                                                                   net::WorkerPool& workers,
                                                                   int64_t nowMs) {
  CAY_ASSIGN(Certificate certificate, source(nowMs));
  CAY_ASSIGN(auto context, TlsContext::server(certificate));
  return std::unique_ptr<CertificateUpkeep>(new CertificateUpkeep(
      std::move(source), workers, std::move(certificate), std::move(context)));
}

net::Task<> CertificateUpkeep::watch() {
  for (;;) {
    co_await net::sleepFor(kBetweenLooks);
    (void)co_await look(wallMs());
  }
}

net::Task<bool> CertificateUpkeep::look(int64_t nowMs) {
  const auto shown = show(co_await workers_.run([this, nowMs] { return source_(nowMs); }));
  if (shown) {
    lastFailure_.clear();
    co_return *shown;
  }
  if (std::exchange(lastFailure_, shown.error().message) != shown.error().message) {
    log(Level::kWarn, "the certificate of TLS could not be renewed",
        {{"error", shown.error().message}});
  }
  co_return false;
}

Result<bool> CertificateUpkeep::show(Result<Certificate> certificate) {
  if (!certificate) return std::unexpected(std::move(certificate).error());
  if (certificate->certificatePem == shown_.certificatePem &&
      certificate->keyPem == shown_.keyPem) {
    return false;
  }
  CAY_TRY(context_->renew(*certificate));
  shown_ = *std::move(certificate);
  return true;
}

}  // namespace cay::hub
