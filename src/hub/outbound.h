// Connections of the hub to other machines, made as this machine's programs make them: through its
// proxy where it has one.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "hub/previous_proxy.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::hub {

// Must be destroyed before the loop.
class Outbound {
 public:
  explicit Outbound(std::optional<PreviousProxy> proxy) : proxy_(std::move(proxy)) {}

  // kUnreachable, with the reason.
  net::Task<Result<net::Stream>> dial(std::string host, uint16_t port,
                                      Millis within = Millis(20'000));

 private:
  net::Task<Result<net::Stream>> connect(std::string host, uint16_t port);
  net::Task<Result<net::Stream>> throughProxy(std::string host, uint16_t port);

  static constexpr size_t kLookups = 4;

  std::optional<PreviousProxy> proxy_;
  net::WorkerPool lookups_{kLookups};
};

}  // namespace cay::hub
