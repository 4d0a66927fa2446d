// What a host serves: one sandbox, which is where it finds itself (dedicated.cc) or one that
// somebody else has made (attached.cc), or a pool of them (pool.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/error.h"
#include "host/config.h"
#include "net/handler.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::host {

class Served {
 public:
  virtual ~Served() = default;

  // Completes when requests can be answered. kGone if what was to be served is over.
  virtual net::Task<Result<>> start() = 0;
  virtual net::Handler& handler() = 0;
  // It is listened now, on this port.
  virtual void listening(uint16_t port) = 0;
  // Called a few times a second. How long nothing has happened.
  virtual int64_t tick(int64_t nowMs) = 0;
  // Why it cannot be served any longer: kGone if it is over, another code if a new start helps.
  virtual Result<> stands() { return {}; }
  // Ends all commands.
  virtual net::Task<> shutdown() = 0;
};

// `environment` is what commands get; `commandOpenFiles` the limit they had before it was raised
// for us. All but `environment` must outlive the result.
std::unique_ptr<Served> serveOne(boost::asio::io_context& io, net::WorkerPool& workers,
                                 const Config& config, std::vector<std::string> environment,
                                 uint64_t commandOpenFiles);
// `changed` is called when stands() has changed.
std::unique_ptr<Served> serveAttached(boost::asio::io_context& io, net::WorkerPool& workers,
                                      const Config& config, std::function<void()> changed);
std::unique_ptr<Served> servePool(boost::asio::io_context& io, net::WorkerPool& workers,
                                  const Config& config);

}  // namespace cay::host
