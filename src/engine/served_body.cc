#include "engine/served_body.h"

#include "base/clock.h"

namespace cay::engine {
namespace {

constexpr Millis kStartPatience{60'000};
// For the server to say why, after its sandbox has ended.
constexpr Millis kWordsPatience{1'000};
constexpr int64_t kMillis = 1000;

}  // namespace

ServedBody::~ServedBody() {
  if (server_) server_->abandon();
}

host::Startup ServedBody::startup() const {
  host::Startup out;
  out.token = ground_.spec.server.token;
  out.compatHostToken = ground_.spec.server.compatHostToken;
  out.idleTimeoutMs = ground_.spec.server.idleTimeoutMs;
  return out;
}

void ServedBody::makeServer(FrontEnd::Plan plan) {
  plan.program = ground_.house.options.cayHost;
  plan.folder = ground_.folder.path();
  plan.network = &ground_.network.space;
  auto onEnd = [news = news_](std::optional<host::End> end, std::string why) {
    news->serverEnd.emplace(end, std::move(why));
    news->changed.notifyAll();
  };
  server_ = FrontEnd::make(ground_.house.io, std::move(plan), std::move(onEnd));
}

net::Task<Result<>> ServedBody::awaitServer() {
  const auto server = server_;
  if (co_await server->serving(kStartPatience)) co_return Result<>();
  if (news_->interrupted) co_return fail(Code::kGone, "nobody needs it any more");
  if (news_->serverEnd) co_return fail(Code::kInternal, news_->serverEnd->second);
  co_return fail(Code::kTimeout, "cay-host did not answer in time");
}

net::Task<Outcome> ServedBody::ended() {
  while (!news_->interrupted && !news_->serverEnd && !news_->sandboxEnded) {
    co_await news_->changed.wait();
  }
  if (!news_->interrupted && !news_->serverEnd) (void)co_await news_->changed.wait(kWordsPatience);
  const JobSpec& spec = ground_.spec;
  const bool late =
      spec.timeoutMs > 0 && wallMs() - ground_.state.status.startedAtMs >= spec.timeoutMs;
  if (late) {
    co_return Outcome{
        .stage = Stage::kError,
        .message = "timed out after " + std::to_string(spec.timeoutMs / kMillis) + " s"};
  }
  if (!news_->serverEnd || news_->serverEnd->first == host::End::kSandboxEnded) {
    co_return Outcome{.stage = Stage::kError, .message = "the sandbox's first process ended"};
  }
  const auto& [end, why] = *news_->serverEnd;
  co_return Outcome{.stage = end == host::End::kIdle ? Stage::kCompleted : Stage::kError,
                    .message = why};
}

void ServedBody::interrupt() {
  news_->interrupted = true;
  if (server_) server_->abandon();
  news_->changed.notifyAll();
}

net::Task<Result<net::Stream>> ServedBody::dialServer() {
  const auto server = server_;
  if (!server) co_return fail(Code::kUnreachable, "its server is not there yet");
  co_return co_await server->dial();
}

}  // namespace cay::engine
