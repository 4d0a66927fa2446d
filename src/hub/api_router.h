// From a request on the API's port to its route: who asks, what for, and errors as clients of the
// Hub read them. What is not ours goes to somebody else.
#pragma once

#include "hub/hub_state.h"
#include "hub/scheduler.h"
#include "net/handler.h"

namespace cay::hub {

class ApiRouter final : public net::Handler {
 public:
  // `edge` gets the ports of jobs (paths below /x/) and CONNECT; `relay` gets every path that is no
  // route of this hub. All must outlive what runs on the loop.
  ApiRouter(HubState& state, Scheduler& scheduler, net::Handler& edge, net::Handler& relay)
      : state_(state), scheduler_(scheduler), edge_(edge), relay_(relay) {}

  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override;

 private:
  HubState& state_;
  Scheduler& scheduler_;
  net::Handler& edge_;
  net::Handler& relay_;
};

}  // namespace cay::hub
