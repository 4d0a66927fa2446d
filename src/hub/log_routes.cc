#include "hub/log_routes.h"

#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>

#include "base/dates.h"
#include "base/text.h"
#include "hub/job_routes.h"
#include "hub/stream_guard.h"
#include "net/event_stream.h"

namespace cay::hub {
namespace {

using engine::LogEvent;
using engine::LogStream;

std::string eventText(const LogEvent& event) {
  std::string text = R"({"data":)";
  json::appendString(text, toValidUtf8(event.text));
  text.append(R"(,"timestamp":")").append(isoDate(event.timeUs)).append("\"}");
  return text;
}

// The job's log, once its engine has one; nullptr if it never will.
net::Task<Result<std::unique_ptr<LogStream>>> openLog(ApiCall& call, const Job& job,
                                                      std::optional<uint64_t> tail,
                                                      StreamGuard& guard) {
  while (true) {
    const bool over = engine::isTerminal(job.row.stage);
    auto log = co_await call.state.engine.logs(job.row.id, tail);
    if (log || log.error().code != Code::kNotFound) co_return log;
    if (over) co_return nullptr;
    CAY_CO_TRY(co_await guard.pause());
  }
}

net::Task<Result<>> sendLines(ApiCall& call, const Job& job, std::optional<uint64_t> tail,
                              net::EventStream& events, StreamGuard& guard) {
  CAY_CO_ASSIGN(const std::unique_ptr<LogStream> log, co_await openLog(call, job, tail, guard));
  if (log == nullptr) co_return co_await events.end();
  bool complete = false;  // the engine had no more to wait for
  while (true) {
    // In this order: what was written before the end is there to be read after it.
    const bool over = engine::isTerminal(job.row.stage);
    CAY_CO_ASSIGN(const auto line, co_await log->next());
    if (line) {
      complete = false;
      CAY_CO_TRY(co_await events.event({}, eventText(*line)));
      continue;
    }
    // A job that is over for clients may write on while it is being ended.
    if (over && complete) co_return co_await events.end();
    CAY_CO_TRY(co_await guard.check());
    complete = co_await log->changed(StreamGuard::kSlice) && over;
  }
}

}  // namespace

net::Task<Result<>> streamLogs(ApiCall& call) {
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  CAY_CO_ASSIGN(const auto tail, call.query.getUint("tail"));
  net::EventStream events(call.response);
  CAY_CO_TRY(co_await events.begin(newHead(call)));
  if (call.head.method == "HEAD") co_return co_await events.end();
  StreamGuard guard(call.response, events, job->changed);
  guard.start(co_await boost::asio::this_coro::executor);
  auto result = co_await sendLines(call, *job, tail, events, guard);
  co_await guard.stop();
  co_return result;
}

}  // namespace cay::hub
