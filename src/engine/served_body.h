// A job that a cay-host serves: what one sandbox and a pool of them have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/front_end.h"
#include "engine/job_body.h"

namespace cay::engine {

class ServedBody : public JobBody {
 public:
  explicit ServedBody(const JobGround& ground) : ground_(ground), pooled_(ground.pooled) {}
  ~ServedBody() override;

  net::Task<Outcome> ended() override;
  void interrupt() override;
  [[nodiscard]] bool serves() const override { return true; }
  net::Task<Result<net::Stream>> dialServer() override;

 protected:
  // Makes the server, which is not started yet.
  void makeServer(FrontEnd::Plan plan);
  // Completes when the server answers.
  net::Task<Result<>> awaitServer();
  // What both kinds of servers are told.
  [[nodiscard]] host::Startup startup() const;

  const JobGround& ground_;
  const sandbox::PooledPtr pooled_;
  std::shared_ptr<FrontEnd> server_;

  // Shared with those who tell us, who may outlive us.
  struct News {
    std::optional<std::pair<std::optional<host::End>, std::string>> serverEnd;
    bool sandboxEnded = false;
    bool interrupted = false;
    net::Event changed;
  };
  const std::shared_ptr<News> news_ = std::make_shared<News>();
};

}  // namespace cay::engine
