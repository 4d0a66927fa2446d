// Watches for clients that wait in vain for a sandbox they have started, since they cannot reach
// the edge, and ends such a job with words that say why (hub/diagnosis.h).
//
// On the loop's thread. Must outlive what runs on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "engine/engine.h"
#include "hub/diagnosis.h"
#include "hub/job_info.h"
#include "hub/job_table.h"
#include "hub/tokens.h"
#include "net/task.h"

namespace cay::hub {

class Reachability {
 public:
  using Clock = std::function<int64_t()>;

  // `edge` may get its port later. `bundle`: the file for SSL_CERT_FILE.
  Reachability(boost::asio::io_context& io, JobTable& jobs, engine::Engine& engine,
               const EdgeAddress& edge, std::string bundle, Clock now = monotonicMs)
      : io_(io),
        jobs_(jobs),
        engine_(engine),
        edge_(edge),
        bundle_(std::move(bundle)),
        now_(std::move(now)) {}

  // Somebody asked for the job by the API.
  void inspected(const Job& job, const Caller& caller);
  // A request for the sandbox's server came through the edge.
  void reached(Job& job);
  // A client that named a job (by TLS; as the target of CONNECT) did not trust us, or was refused.
  void tlsRefused(std::string_view serverName);
  void proxyRefused(std::string_view target);

  // Looks once a second, for ever.
  net::Task<> watch();
  void look();

 private:
  // nullptr for a job that cannot come to its end this way.
  Diagnosis* diagnosisOf(const Job& job);
  Diagnosis* diagnosisOf(std::string_view host);
  // One step from the verdict to the end, so that no request can come in between.
  net::Task<> endIfUnreached(std::string id);

  boost::asio::io_context& io_;
  JobTable& jobs_;
  engine::Engine& engine_;
  const EdgeAddress& edge_;
  std::string bundle_;
  Clock now_;
  std::map<std::string, Diagnosis, std::less<>> watched_;
};

}  // namespace cay::hub
