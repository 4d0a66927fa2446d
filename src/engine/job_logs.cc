#include "engine/job_logs.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/dates.h"
#include "base/json.h"
#include "base/text.h"
#include "net/event.h"
#include "sandbox/line_log.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr Millis kLook{50};  // between two looks for more
constexpr int64_t kMicros = 1000;
constexpr size_t kMostLine = 64 << 10;

class KeptLines final : public LineSource {
 public:
  KeptLines(std::string folder, std::string elseFolder)
      : folders_{std::move(folder), std::move(elseFolder)} {}

  Result<std::optional<LogEvent>> next() override {
    CAY_TRY(open());
    while (reader_) {
      CAY_ASSIGN(const std::optional<sandbox::LogLine> line, reader_->next());
      if (!line) break;
      if (auto event = eventOf(*line)) return event;
    }
    return std::nullopt;
  }

  Result<bool> seekTail(uint64_t lines) override {
    CAY_TRY(open());
    if (!reader_) return lines > 0;
    CAY_TRY(reader_->seekTail(lines));
    CAY_ASSIGN(const auto fromHere, countUpTo(lines));
    reader_.reset();
    CAY_TRY(open());
    CAY_TRY(reader_->seekTail(lines));
    return fromHere < lines;
  }

 private:
  Result<> open() {
    for (const std::string& folder : folders_) {
      if (reader_) return {};
      auto opened = sandbox::LineLogReader::open(AT_FDCWD, folder);
      if (opened) {
        reader_ = *std::move(opened);
      } else if (opened.error().code != Code::kNotFound) {
        return std::unexpected(std::move(opened).error());
      }
    }
    return {};
  }

  Result<uint64_t> countUpTo(uint64_t most) {
    uint64_t count = 0;
    while (count < most) {
      CAY_ASSIGN(const std::optional<sandbox::LogLine> line, reader_->next());
      if (!line) break;
      ++count;
    }
    return count;
  }

  // nullopt for the mere end of a line that was told already.
  std::optional<LogEvent> eventOf(const sandbox::LogLine& line) {
    if (line.dropped > 0) {
      for (Part& part : parts_) part = {};
      return LogEvent{.timeUs = line.timeUs,
                      .text = "[" + std::to_string(line.dropped) + " bytes of output are gone]"};
    }
    Part& part = parts_[line.stream];
    const bool isRest = std::exchange(part.continues, line.continues);
    LogEvent event{.timeUs = line.timeUs, .text = {}};
    part.decoder.feed(line.text, event.text);
    if (!line.continues) part.decoder.flush(event.text);
    if (isRest && event.text.empty()) return std::nullopt;
    return event;
  }

  // A line of a stream that came in pieces, which may be cut within a letter.
  struct Part {
    bool continues = false;
    Utf8Decoder decoder;
  };

  const std::string folders_[2];
  std::optional<sandbox::LineLogReader> reader_;
  Part parts_[sandbox::kStreams];
};

class HostLines final : public LineSource {
 public:
  explicit HostLines(std::string file) : file_(std::move(file)) {}

  Result<std::optional<LogEvent>> next() override {
    while (true) {
      const size_t end = waiting_.find('\n');
      if (end != std::string::npos || waiting_.size() >= kMostLine) {
        const size_t size = std::min(end, kMostLine);
        LogEvent event = eventOf(std::string_view(waiting_).substr(0, size));
        waiting_.erase(0, end == size ? size + 1 : size);
        return event;
      }
      CAY_ASSIGN(const bool more, read());
      if (!more) return std::nullopt;
    }
  }

  Result<bool> seekTail(uint64_t lines) override {
    uint64_t total = 0;
    while (true) {
      CAY_ASSIGN(const auto event, next());
      if (!event) break;
      ++total;
    }
    rewind();
    for (uint64_t i = lines; i < total; ++i) CAY_TRY(next());
    return total < lines;
  }

 private:
  void rewind() {
    at_ = 0;
    waiting_.clear();
    timeUs_ = 0;
  }

  Result<bool> read() {
    if (!open_.valid()) {
      auto opened = sys::openAt(AT_FDCWD, file_.c_str(), O_RDONLY | O_NOFOLLOW);
      if (!opened && opened.error().code == Code::kNotFound) return false;
      if (!opened) return std::unexpected(std::move(opened).error());
      open_ = *std::move(opened);
    }
    CAY_ASSIGN(const sys::Stat info, sys::statFd(open_.get()));
    if (std::cmp_less(info.st_size, at_)) {
      at_ = 0;  // it was cut
      waiting_.clear();
    }
    char buffer[16 << 10];
    CAY_ASSIGN(const size_t size, sys::preadSome(open_.get(), buffer, at_));
    waiting_.append(buffer, size);
    at_ += size;
    return size > 0;
  }

  LogEvent eventOf(std::string_view line) {
    const auto parsed = json::parse(line);
    const json::Object* object = parsed ? parsed->if_object() : nullptr;
    const json::Value* time = object == nullptr ? nullptr : object->if_contains("time");
    if (time != nullptr && time->is_string()) {
      timeUs_ = parseIsoDate(std::string(time->get_string())).value_or(timeUs_);
    }
    return {.timeUs = timeUs_, .text = toValidUtf8(line)};
  }

  const std::string file_;
  Fd open_;
  uint64_t at_ = 0;
  std::string waiting_;
  int64_t timeUs_ = 0;
};

class JobLog final : public LogStream {
 public:
  JobLog(std::unique_ptr<LoggedJob> job, std::unique_ptr<LineSource> lines)
      : job_(std::move(job)), lines_(std::move(lines)) {}

  Result<> seek(uint64_t tail) {
    CAY_ASSIGN(const bool fewer, lines_->seekTail(tail));
    begun_ = !fewer;
    return {};
  }

  net::Task<Result<std::optional<LogEvent>>> next() override {
    CAY_CO_TRY(look());
    co_return std::exchange(ahead_, std::nullopt);
  }

  net::Task<bool> changed(Millis limit) override {
    const int64_t until = monotonicMs() + limit.count();
    while (true) {
      const bool quiet = job_->isQuiet();
      // What cannot be read is told by next().
      if (!look() || ahead_ || quiet) co_return true;
      const int64_t left = until - monotonicMs();
      if (left <= 0) co_return false;
      co_await net::sleepFor(std::min(kLook, Millis(left)));
    }
  }

 private:
  // Has the next event ready, if there is one.
  Result<> look() {
    if (ahead_) return {};
    if (!begun_ && job_->startedAtMs() == 0) return {};
    if (!held_) {
      CAY_ASSIGN(held_, lines_->next());
    }
    if (!begun_) {
      begun_ = true;
      const int64_t started = job_->startedAtMs() * kMicros;
      ahead_ = {
          .timeUs = held_ && held_->timeUs > 0 ? std::min(started, held_->timeUs - 1) : started,
          .text = "===== Job started at " + isoDate(started, Fraction::kMillis) + " ====="};
    } else {
      ahead_ = std::exchange(held_, std::nullopt);
      if (!ahead_) return {};
      ahead_->timeUs = std::max(ahead_->timeUs, lastUs_ + 1);
    }
    lastUs_ = ahead_->timeUs;
    return {};
  }

  std::unique_ptr<LoggedJob> job_;
  std::unique_ptr<LineSource> lines_;
  bool begun_ = false;  // the first line was told, or is not to be
  std::optional<LogEvent> held_;
  std::optional<LogEvent> ahead_;
  int64_t lastUs_ = 0;
};

}  // namespace

std::unique_ptr<LineSource> keptLines(std::string folder, std::string elseFolder) {
  return std::make_unique<KeptLines>(std::move(folder), std::move(elseFolder));
}

std::unique_ptr<LineSource> hostLines(std::string file) {
  return std::make_unique<HostLines>(std::move(file));
}

net::Task<Result<std::unique_ptr<LogStream>>> openLog(std::unique_ptr<LoggedJob> job,
                                                      std::unique_ptr<LineSource> lines,
                                                      std::optional<uint64_t> tail) {
  auto log = std::make_unique<JobLog>(std::move(job), std::move(lines));
  if (tail) CAY_CO_TRY(log->seek(*tail));
  co_return std::unique_ptr<LogStream>(std::move(log));
}

}  // namespace cay::engine
