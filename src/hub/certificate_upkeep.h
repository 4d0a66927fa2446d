// Keeps the certificate that the hub shows good: its own CA's is renewed before it ends, and one
// that somebody else renews is read again when its files change. Connections go on meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "hub/ca.h"
#include "hub/tls_context.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::hub {

// Gives what is to be shown from now on; blocking.
using CertificateSource = std::function<Result<Certificate>(int64_t nowMs)>;

// Of the CA, whose object it keeps a copy of.
CertificateSource fromCa(Ca ca);
// Of --tls-cert and --tls-key: certificates, the hub's own first, and its key, as PEM. kInvalid if
// they do not belong together or have expired.
CertificateSource fromFiles(std::string certificateFile, std::string keyFile);

// On the loop's thread.
class CertificateUpkeep {
 public:
  // Blocking; fails if there is nothing to show. `workers` outlives it.
  static Result<std::unique_ptr<CertificateUpkeep>> open(CertificateSource source,
                                                         net::WorkerPool& workers, int64_t nowMs);

  [[nodiscard]] const std::shared_ptr<TlsContext>& context() const { return context_; }

  // Looks twice a minute, for ever. What cannot be used is logged, once, and what was good before
  // is shown on.
  net::Task<> watch();
  // True if something else is shown now.
  net::Task<bool> look(int64_t nowMs);

 private:
  CertificateUpkeep(CertificateSource source, net::WorkerPool& workers, Certificate shown,
                    std::shared_ptr<TlsContext> context)
      : source_(std::move(source)),
        workers_(workers),
        shown_(std::move(shown)),
        context_(std::move(context)) {}
  Result<bool> show(Result<Certificate> certificate);

  CertificateSource source_;
  net::WorkerPool& workers_;
  Certificate shown_;
  std::shared_ptr<TlsContext> context_;
  std::string lastFailure_;
};

}  // namespace cay::hub
