// OpenSSL's settings for one side of TLS: 1.2 and newer, HTTP/1.1 only, no renegotiation.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "hub/ca.h"

namespace cay::hub {

class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> server(const Certificate& certificate);
  // Trusts the certificates of the file, and nothing else.
  static Result<std::shared_ptr<TlsContext>> client(const std::string& caFile);

  // What a server shows to connections from now on; if it fails, nothing has changed.
  Result<> renew(const Certificate& certificate);

  // For connections that begin now; they keep it.
  [[nodiscard]] SSL_CTX* current() const { return context_.get(); }

 private:
  explicit TlsContext(std::shared_ptr<SSL_CTX> context) : context_(std::move(context)) {}

  std::shared_ptr<SSL_CTX> context_;
};

}  // namespace cay::hub
