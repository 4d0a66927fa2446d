#include "host/exec_stream.h"

#include <boost/asio/this_coro.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "host/disconnect_watch.h"

namespace cay::host {
namespace {

using sandbox::Exec;
using sandbox::Follower;
using sandbox::kStreams;
using sandbox::StreamId;

constexpr Millis kPingEvery{15'000};
// Most commands end within a few milliseconds. So long the events wait for each other, so that a
// short command costs the client one packet.
constexpr Millis kYoung{3};
constexpr size_t kFlushBytes = 64 * 1024;

class EventWriter {
 public:
  explicit EventWriter(OutputEncoding encoding) : encoding_(encoding) {}

  void start(const Exec& exec) {
    out_.append("{\"event\":\"start\",\"pid\":").append(std::to_string(exec.pid));
    out_.append(",\"exec_id\":\"").append(exec.id).append("\"}\n");
  }
  void ping() { out_.append("{\"event\":\"ping\"}\n"); }

  void piece(const Follower::Piece& piece) {
    if (!piece.data.empty()) return data(piece.stream, piece.data);
    flushText(piece.stream);
    out_.append("{\"event\":\"gap\",\"stream\":\"").append(sandbox::streamName(piece.stream));
    out_.append("\",\"from\":").append(std::to_string(piece.from));
    out_.append(",\"to\":").append(std::to_string(piece.to)).append("}\n");
  }

  // The last line has no newline: clients that split lines then read on to the end of the answer,
  // and keep their connection.
  void exit(const Exec& exec) {
    flushTexts();
    json::Object event{{"event", "exit"}};
    for (auto& [key, value] : exitObject(exec)) event[key] = std::move(value);
    out_.append(json::serialize(event));
  }

  // Characters that the output breaks off in the middle of.
  void flushTexts() {
    for (int stream = 0; stream < kStreams; ++stream) flushText(static_cast<StreamId>(stream));
  }

  std::string take() { return std::exchange(out_, {}); }
  [[nodiscard]] size_t size() const { return out_.size(); }

 private:
  void data(StreamId stream, std::string_view bytes) {
    if (encoding_ == OutputEncoding::kBase64) {
      open(stream);
      out_.append("\"").append(base64Encode(bytes)).append("\",\"encoding\":\"base64\"}\n");
      return;
    }
    text_.clear();
    decoders_[stream].feed(bytes, text_);
    text(stream);
  }

  void flushText(StreamId stream) {
    text_.clear();
    decoders_[stream].flush(text_);
    text(stream);
  }

  void text(StreamId stream) {
    if (text_.empty()) return;
    open(stream);
    json::appendString(out_, text_);
    out_.append("}\n");
  }

  void open(StreamId stream) {
    out_.append("{\"event\":\"").append(sandbox::streamName(stream)).append("\",\"data\":");
  }

  OutputEncoding encoding_;
  Utf8Decoder decoders_[kStreams];
  std::string text_;
  std::string out_;
};

net::Task<Result<>> pump(Call& call, Follower& follower, const StreamOptions& options,
                         DisconnectWatch& watch) {
  Exec& exec = *follower.exec();
  EventWriter events(options.encoding);
  if (options.startEvent) events.start(exec);
  const int64_t youngUntil = monotonicMs() + kYoung.count();
  bool young = true;
  while (true) {
    CAY_CO_ASSIGN(const auto piece, follower.next());
    if (piece) {
      events.piece(*piece);
      if (events.size() >= kFlushBytes) CAY_CO_TRY(co_await call.response.write(events.take()));
      continue;
    }
    if (follower.atExit()) {
      events.exit(exec);
      co_return co_await call.response.finish(events.take());
    }
    if (!options.follow && follower.pastSync()) {
      events.flushTexts();
      co_return co_await call.response.finish(events.take());
    }
    if (watch.gone()) co_return fail(Code::kClosed, "the client has gone");
    if (young) {
      const bool news = co_await exec.changed.wait(kYoung);
      if (news && monotonicMs() < youngUntil) continue;
      young = false;
      watch.start(co_await boost::asio::this_coro::executor);
      if (news) continue;
    }
    if (events.size() > 0) {
      CAY_CO_TRY(co_await call.response.write(events.take()));
      continue;  // something may have come meanwhile
    }
    if (!co_await exec.changed.wait(kPingEvery)) events.ping();
  }
}

}  // namespace

json::Object exitObject(const Exec& exec) {
  const sandbox::ExitRecord& record = *exec.exit;
  json::Object exit;
  const auto number = [](const std::optional<int>& value) {
    return value ? json::Value(*value) : json::Value(nullptr);
  };
  exit["exit_code"] = number(record.exitCode);
  exit["signal"] = number(record.signal);
  exit["timed_out"] = record.cause == sandbox::Cause::kTimedOut;
  exit["duration_ms"] = record.durationMs;
  exit["exec_id"] = exec.id;
  exit["cause"] = sandbox::causeName(record.cause);
  if (record.cause == sandbox::Cause::kStartFailed) exit["error"] = toValidUtf8(record.error);
  json::Array limits;
  for (const std::string_view name : sandbox::limitNames(record.limitsHit))
    limits.emplace_back(name);
  exit["limits_hit"] = std::move(limits);
  exit["usage"] = json::Object{{"user_ms", record.usage.userMs},
                               {"system_ms", record.usage.systemMs},
                               {"max_rss_bytes", record.usage.maxRssBytes},
                               {"read_bytes", record.usage.readBytes},
                               {"write_bytes", record.usage.writeBytes}};
  exit["output_bytes"] = json::Object{{"stdout", record.outputBytes[sandbox::kStdout]},
                                      {"stderr", record.outputBytes[sandbox::kStderr]}};
  return exit;
}

net::Task<Result<>> streamOutput(Call& call, Follower& follower, StreamOptions options) {
  net::ResponseHead head;
  head.fields.add("Content-Type", "application/x-ndjson");
  head.fields.add("X-Accel-Buffering", "no");
  CAY_CO_TRY(call.response.begin(std::move(head)));
  DisconnectWatch watch(call.response, follower.exec()->changed);
  auto result = co_await pump(call, follower, options, watch);
  co_await watch.stop();
  co_return result;
}

}  // namespace cay::host
