// The ports of jobs, seen from outside: who may reach one, and what of a request its server gets to
// see. The hub's tokens end here; code in a job is root there and could read everything that
// reaches it.
#pragma once

#include <expected>
#include <string>

#include "engine/engine.h"
#include "hub/api_error.h"
#include "hub/edge_name.h"
#include "hub/job_info.h"
#include "hub/job_table.h"
#include "hub/reachability.h"
#include "hub/tokens.h"
#include "net/handler.h"
#include "net/passage.h"
#include "net/task.h"

namespace cay::hub {

class Edge {
 public:
  // All of it outlives the edge.
  struct Parts {
    const EdgeAddress& address;
    const Tokens& tokens;
    JobTable& jobs;
    engine::Engine& engine;
    Reachability& reachability;
  };
  explicit Edge(const Parts& parts) : at_(parts) {}

  // Answers a request whose Host names a port of a job; 421 where it names anything else. Without a
  // good token clients are told no more than that (401, 403), unless the port is public. For those
  // who may not use its namespace there is no such job (404); others are told that there is none,
  // or no such port (404), or that it is over (410).
  //
  // The health of a sandbox's server is answered as soon as it serves, within the time that clients
  // wait for one answer.
  net::Task<> byHost(const net::RequestHead& head, net::Body& body, net::Response& response);
  // The same for a path below /x/, for clients without TLS; 404 for one that names no port.
  net::Task<> byPath(const net::RequestHead& head, net::Body& body, net::Response& response);

 private:
  struct Request {
    EdgeName name;
    std::string target;  // for the job's server
    std::string prefix;  // of the path, that the server does not see
  };

  net::Task<> answer(Request request, const net::RequestHead& head, net::Body& body,
                     net::Response& response);
  net::Task<std::expected<JobPtr, ApiError>> admit(const EdgeName& name,
                                                   const net::RequestHead& head);
  // False if the client has gone.
  static net::Task<bool> untilServing(Job& job, net::Response& response);
  [[nodiscard]] net::Onward onward(const Request& request, const Job& job,
                                   const net::RequestHead& head) const;

  Parts at_;
};

}  // namespace cay::hub
