// TLS around a stream: what comes out is a plain stream whose other end is pumped here, until both
// directions have ended. Backpressure passes through, with a bounded amount of bytes on the way,
// and so do half-closes. A TLS stream that ends without saying so, or breaks, ends as a cut one
// (net::Cut), never as an orderly one; and the other way round.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "hub/tls_context.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::hub {

struct TlsFailure {
  enum class Why : uint8_t {
    kUnknownCa,  // the client said that it does not accept our certificate, or left on seeing it
    kTimeout,
    kOther,
  };
  std::string serverName;  // that the client asked for, as it wrote it; may be empty
  Why why = Why::kOther;
};

inline constexpr Millis kHandshakeTime{10'000};

net::Task<std::expected<net::Stream, TlsFailure>> acceptTls(std::shared_ptr<TlsContext> context,
                                                            net::Stream client,
                                                            Millis within = kHandshakeTime);
// kUnreachable if the server's certificate is not one for `name`, kTimeout.
net::Task<Result<net::Stream>> connectTls(std::shared_ptr<TlsContext> context, net::Stream server,
                                          std::string name, Millis within = kHandshakeTime);

}  // namespace cay::hub
