// From a request to its route: health, authentication, the sandbox's prefix, errors as JSON.
#pragma once

#include <string>

#include "host/activity.h"
#include "host/exec_routes.h"
#include "host/file_routes.h"
#include "net/dialer.h"
#include "net/handler.h"

namespace cay::host {

// The services of one sandbox, whose routes are all below one prefix.
struct SandboxServices {
  ExecService exec;
  FileService& files;
  net::Dialer& dialer;
};

class Router final : public net::Handler {
 public:
  // An empty token lets in whoever speaks from this machine and is no web page.
  Router(std::string token, SandboxServices services, Activity& activity)
      : token_(std::move(token)), services_(std::move(services)), activity_(activity) {}

  // The host's own port, known once it listens; never proxied to.
  void setOwnPort(uint16_t port) { ownPort_ = port; }

  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override;

 private:
  [[nodiscard]] Result<> authenticate(const net::RequestHead& head) const;
  net::Task<Result<>> route(const net::RequestHead& head, net::Body& body, net::Response& response);
  net::Task<Result<>> routeSandbox(Call& call);

  std::string token_;
  SandboxServices services_;
  Activity& activity_;
  uint16_t ownPort_ = 0;
};

// True for a Host field that names this machine's loopback.
bool isLoopbackHost(std::string_view host);

}  // namespace cay::host
