// One sandbox: a keeper behind the walls, and a cay-host outside that serves it.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "engine/served_body.h"
#include "sandbox/registry.h"

namespace cay::engine {
namespace {

class DedicatedBody final : public ServedBody {
 public:
  using ServedBody::ServedBody;

  net::Task<Result<>> start() override {
    // The server comes up while the walls do: it waits for the keeper's mark.
    makeServer(plan());
    CAY_CO_TRY(server_->start());
    CAY_CO_TRY(co_await pooled_->sandbox.handOver());
    watchSandbox();
    co_return co_await awaitServer();
  }

  Result<> adopt() override {
    if (ground_.state.status.stage == Stage::kScheduling) {
      return fail(Code::kGone, "its start was not finished");
    }
    makeServer(plan());
    watchSandbox();
    return server_->adopt();
  }

  void interrupt() override {
    ServedBody::interrupt();
    ground_.house.registry->retire(pooled_, sandbox::Death::kKilled);
  }

  net::Task<> stop() override {
    if (server_) co_await server_->stop();
    co_await FrontEnd::killLeft(ground_.folder.path());
    ground_.house.registry->retire(pooled_, sandbox::Death::kKilled);
    co_await sandbox::Registry::ended(pooled_);
  }

 private:
  [[nodiscard]] FrontEnd::Plan plan() const {
    const sandbox::PoolFolder& folder = ground_.house.registry->folder();
    host::Startup out = startup();
    const layers::ImageConfig config =
        pooled_->image ? pooled_->image->config : layers::ImageConfig();
    out.attached = host::AttachedSandbox{.folder = folder.sandboxesPath() + "/" + ground_.spec.id,
                                         .mode = ground_.house.registry->mode(),
                                         .firstUid = folder.userIds().first(pooled_->record.slot),
                                         .cwd = config.cwd,
                                         .env = jobEnvironment(ground_.spec, config),
                                         .logs = kJobLogs};
    return {.program = {}, .folder = {}, .startup = std::move(out)};
  }

  void watchSandbox() {
    boost::asio::co_spawn(ground_.house.io, awaitSandbox(pooled_, news_), boost::asio::detached);
  }

  static net::Task<> awaitSandbox(sandbox::PooledPtr pooled, std::shared_ptr<News> news) {
    co_await pooled->sandbox.ended();
    news->sandboxEnded = true;
    news->changed.notifyAll();
  }
};

}  // namespace

std::unique_ptr<JobBody> makeDedicatedBody(const JobGround& ground) {
  return std::make_unique<DedicatedBody>(ground);
}

}  // namespace cay::engine
