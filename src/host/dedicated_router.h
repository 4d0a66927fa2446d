// The routes of a host with one sandbox: all below /v1.
#pragma once

#include <string>

#include "host/router.h"
#include "host/sandbox_routes.h"
#include "sandbox/activity.h"

namespace cay::host {

class DedicatedRouter final : public Router {
 public:
  // An empty token lets in whoever speaks from this machine and is no web page.
  DedicatedRouter(std::string token, SandboxAccess& access, sandbox::Activity& activity)
      : token_(std::move(token)), access_(access), activity_(activity) {}

 protected:
  [[nodiscard]] Result<> admit(const net::RequestHead& head) const override;
  net::Task<Result<>> route(Call& call) override;

 private:
  [[nodiscard]] Result<> authenticate(const net::RequestHead& head) const;

  const std::string token_;
  SandboxAccess& access_;
  sandbox::Activity& activity_;
};

}  // namespace cay::host
