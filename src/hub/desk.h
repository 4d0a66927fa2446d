// All that answers requests, put together: the routes of the API, the edge, the proxy, the relay,
// and what looks after them meanwhile.
//
// On the loop's thread. Must outlive what runs on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "hub/api_router.h"
#include "hub/certificate_upkeep.h"
#include "hub/connect_proxy.h"
#include "hub/edge.h"
#include "hub/front_door.h"
#include "hub/hub_state.h"
#include "hub/options.h"
#include "hub/outbound.h"
#include "hub/reachability.h"
#include "hub/relay.h"
#include "hub/scheduler.h"
#include "hub/tls_listener.h"
#include "net/server.h"
#include "net/worker_pool.h"

namespace cay::hub {

class Desk {
 public:
  // All of it outlives the desk.
  struct Parts {
    boost::asio::io_context& io;
    const ServeOptions& options;
    net::WorkerPool& workers;
    Store& store;
    engine::Engine& engine;
    CertificateUpkeep& certificates;
    Outbound& outbound;
    std::string bundle;        // for SSL_CERT_FILE
    std::string bucketFolder;  // where files of buckets are
  };
  static Result<std::unique_ptr<Desk>> make(Parts parts);

  // Takes up what an earlier hub left, the engine's jobs included.
  net::Task<Result<>> restore();
  // Clients can come from now on.
  Result<> open();
  [[nodiscard]] uint16_t port() const { return server_->port(); }
  [[nodiscard]] uint16_t tlsPort() const { return tls_.port(); }

  // Nobody comes in any more; completes when those inside have been served, or after a while.
  net::Task<> close();
  JobTable& jobs() { return jobs_; }

 private:
  Desk(Parts parts, std::unique_ptr<Tokens> tokens, std::unique_ptr<Relay> relay);
  void follow();

  Parts at_;
  std::unique_ptr<Tokens> tokens_;  // does not move, since others refer to it
  std::unique_ptr<Relay> relay_;
  Callers callers_;
  JobTable jobs_;
  HubState state_;
  Scheduler scheduler_{state_};
  Reachability reachability_;
  Edge edge_;
  TlsListener tls_;
  ConnectProxy connects_;
  SideDoor side_{edge_, connects_};
  ApiRouter router_;
  FrontDoor door_;
  std::unique_ptr<net::Server> server_;
};

}  // namespace cay::hub
