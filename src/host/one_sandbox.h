// What the ways to serve one sandbox below /v1 have in common.
#pragma once

#include <memory>
#include <utility>

#include "base/clock.h"
#include "host/dedicated_router.h"
#include "host/served.h"
#include "sandbox/activity.h"
#include "sandbox/sandbox.h"

namespace cay::host {

class OneSandbox : public Served, private SandboxAccess {
 public:
  net::Handler& handler() override { return router_; }
  int64_t tick(int64_t nowMs) override { return activity_.quietMs(nowMs, sandbox_->running()); }
  net::Task<> shutdown() override { return sandbox_->shutdown(); }

 protected:
  OneSandbox(boost::asio::io_context& io, net::WorkerPool& workers, const Config& config,
             ExecDefaults defaults)
      : io_(io),
        config_(config),
        defaults_(std::move(defaults)),
        files_{.place = nullptr, .workers = workers},
        activity_(monotonicMs()),
        router_(config.token, *this, activity_) {}

  boost::asio::io_context& io_;
  const Config& config_;
  const ExecDefaults defaults_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
  FileService files_;
  sandbox::Activity activity_;

 private:
  ExecService exec() override { return {.sandbox = *sandbox_, .defaults = defaults_}; }
  net::Task<Result<FileService>> files() override { co_return files_; }

  DedicatedRouter router_;
};

}  // namespace cay::host
