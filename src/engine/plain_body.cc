// A command behind walls. Its keeper drains what it writes, holds it to its time and keeps the
// record of its end, with or without us.
#include <fcntl.h>

#include "base/log.h"
#include "engine/job_body.h"
#include "sandbox/registry.h"
#include "sys/file.h"

namespace cay::engine {
namespace {

constexpr char kKey[] = "job";  // of the one command

class PlainBody final : public JobBody {
 public:
  explicit PlainBody(const JobGround& ground) : ground_(ground), pooled_(ground.pooled) {}

  net::Task<Result<>> start() override {
    // An earlier attempt may have left its lines.
    (void)sys::renameAt(AT_FDCWD, ground_.folder.lines().c_str(), AT_FDCWD, linesInside().c_str());
    sandbox::StartRequest request;
    request.spec.kind = sandbox::Kind::kProcess;
    request.spec.argv = ground_.spec.command;
    request.spec.env = jobEnvironment(ground_.spec, pooled_->image->config);
    request.spec.cwd = pooled_->image->config.cwd;
    request.spec.timeoutMs = ground_.timeLeftMs();
    request.spec.onDisconnect = sandbox::OnDisconnect::kKeep;
    request.spec.lines = true;
    request.cmd = "null";
    request.key = kKey;
    CAY_CO_ASSIGN(sandbox::Sandbox::Started started,
                  co_await pooled_->sandbox.start(std::move(request)));
    exec_ = std::move(started.exec);
    co_return Result<>();
  }

  Result<> adopt() override {
    const auto processes = pooled_->sandbox.processes();
    if (processes.empty()) return fail(Code::kGone, "nothing had been started");
    exec_ = processes.front();
    return {};
  }

  net::Task<Outcome> ended() override {
    while (!interrupted_ && !exec_->exit && exec_->live) co_await exec_->changed.wait();
    if (!exec_->exit) co_return Outcome{.stage = Stage::kError, .message = "nobody saw its end"};
    co_return outcomeOf(ground_.spec, *exec_->exit);
  }

  void interrupt() override {
    interrupted_ = true;
    if (exec_) exec_->changed.notifyAll();
    retire();
  }

  net::Task<> stop() override {
    retire();
    co_await sandbox::Registry::ended(pooled_);
  }

  [[nodiscard]] std::optional<int> exitCode() const override {
    return exec_ && exec_->exit ? exec_->exit->exitCode : std::nullopt;
  }

 private:
  [[nodiscard]] std::string linesInside() const {
    return ground_.house.registry->folder().sandboxesPath() + "/" + ground_.spec.id + "/execs/" +
           sandbox::kLinesFolder;
  }

  void retire() {
    if (pooled_->death) return;
    // Its writer goes on writing, wherever the folder is.
    auto kept =
        sys::renameAt(AT_FDCWD, linesInside().c_str(), AT_FDCWD, ground_.folder.lines().c_str());
    if (!kept && kept.error().code != Code::kNotFound) {
      log(Level::kError, "the log of a job could not be kept",
          {{"job", ground_.spec.id}, {"error", kept.error().message}});
    }
    ground_.house.registry->retire(pooled_, sandbox::Death::kKilled);
  }

  const JobGround& ground_;
  const sandbox::PooledPtr pooled_;
  sandbox::ExecPtr exec_;
  bool interrupted_ = false;
};

}  // namespace

std::unique_ptr<JobBody> makePlainBody(const JobGround& ground) {
  return std::make_unique<PlainBody>(ground);
}

}  // namespace cay::engine
