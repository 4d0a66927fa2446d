#include "host/file_transfer.h"

#include <charconv>

#include "base/clock.h"
#include "base/text.h"
#include "files/read.h"
#include "files/whole_write.h"
#include "host/body_pump.h"
#include "host/route.h"
#include "net/event.h"

namespace cay::host {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

// Octal permission bits, "644" or "0644".
Result<std::optional<mode_t>> modeOf(const Call& call) {
  const auto text = call.query.get("mode");
  if (!text || text->empty()) return std::nullopt;
  const std::string_view digits = text->starts_with("0o") ? text->substr(2) : *text;
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), mode, 8);
  if (error != std::errc() || end != digits.data() + digits.size() || mode > 07777) {
    return fail(Code::kInvalid,
                "mode must be octal permission bits like 644, not " + quoted(*text));
  }
  return mode;
}

// The length of a file that says nothing about it (below /proc) is known when it has been sent.
net::Task<Result<>> streamUnsized(Call& call, FileService& service, files::Reading reading) {
  struct Stream {
    files::Reading reading;
    std::string buffer;
  };
  const auto stream = std::make_shared<Stream>(std::move(reading), std::string(kPiece, '\0'));
  CAY_CO_TRY(co_await call.response.write(stream->reading.head));
  for (;;) {
    auto work = [stream] { return files::readMore(stream->reading, stream->buffer); };
    CAY_CO_ASSIGN(const size_t got, co_await service.workers.run(std::move(work)));
    if (got == 0) co_return co_await call.response.finish();
    CAY_CO_TRY(co_await call.response.write(std::string_view(stream->buffer).substr(0, got)));
  }
}

net::Task<Result<>> answerWritten(Call& call, uint64_t bytes) {
  const std::string json = "{\"written\":" + std::to_string(bytes) + "}";
  co_return co_await net::sendJson(call.response, 200, json);
}

// Closing a file that was given up can take a while, so the pool does it.
template <typename Upload>
net::Task<> discard(FileService& service, std::shared_ptr<Upload> upload) {
  auto work = [upload = std::move(upload)]() mutable { upload.reset(); };
  co_await service.workers.run(std::move(work));
}

// Feeds the body to `upload`; when that fails, gives it up.
template <typename Upload>
net::Task<Result<>> receive(FileService& service, BodyPump& pump, std::shared_ptr<Upload>& upload) {
  Result<> fed =
      co_await pump.feed([upload](std::string_view piece) { return upload->write(piece); });
  if (!fed) co_await discard(service, std::move(upload));
  co_return fed;
}

net::Task<Result<>> writeWhole(Call& call, FileService& service, std::string path,
                               std::optional<mode_t> mode) {
  BodyPump pump(call.head, call.body, service.workers);
  CAY_CO_TRY(co_await pump.begin());
  if (pump.ended()) {
    auto work = [place = service.place, path = std::move(path), mode,
                 body = pump.first()]() -> Result<> {
      CAY_ASSIGN(const auto upload, files::replaceFile(place, path, mode));
      CAY_TRY(upload->write(*body));
      return upload->commit();
    };
    CAY_CO_TRY(co_await service.workers.run(std::move(work)));
    co_return co_await answerWritten(call, pump.received());
  }
  auto open = [place = service.place, path = std::move(path), mode] {
    return files::replaceFile(place, path, mode);
  };
  CAY_CO_ASSIGN(std::shared_ptr<files::Upload> upload,
                co_await service.workers.run(std::move(open)));
  CAY_CO_TRY(co_await receive(service, pump, upload));
  auto commit = [upload] { return upload->commit(); };
  CAY_CO_TRY(co_await service.workers.run(std::move(commit)));
  co_return co_await answerWritten(call, pump.received());
}

// Gives the next range of the same upload a moment to begin (see files/offset_bursts.h).
net::Task<> linger(const files::RangeUpload& upload) {
  constexpr Millis kStep{5};
  const int64_t until = monotonicMs() + files::OffsetBursts::kLingerMs;
  while (upload.shouldLinger() && monotonicMs() < until) co_await net::sleepFor(kStep);
}

net::Task<Result<>> writeRange(Call& call, FileService& service, std::string path,
                               files::RangeOptions options) {
  auto open = [place = service.place, bursts = service.bursts, path = std::move(path), options] {
    return files::RangeUpload::open(place, bursts, path, options);
  };
  // Opened before the body is read: the file has to know which ranges are on their way.
  CAY_CO_ASSIGN(std::shared_ptr<files::RangeUpload> upload,
                co_await service.workers.run(std::move(open)));
  BodyPump pump(call.head, call.body, service.workers);
  CAY_CO_TRY(co_await receive(service, pump, upload));
  upload->complete();
  co_await linger(*upload);
  auto commit = [upload] { return upload->commit(); };
  CAY_CO_TRY(co_await service.workers.run(std::move(commit)));
  co_return co_await answerWritten(call, pump.received());
}

}  // namespace

net::Task<Result<>> readFile(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  files::ReadRange range;
  CAY_CO_ASSIGN(const auto offset, call.query.getUint("offset"));
  CAY_CO_ASSIGN(range.length, call.query.getUint("length"));
  range.offset = offset.value_or(0);
  auto work = [place = service.place, path = std::move(path), range] {
    return files::openForReading(*place, path, range);
  };
  CAY_CO_ASSIGN(files::Reading reading, co_await service.workers.run(std::move(work)));
  net::ResponseHead head;
  head.fields.add("Content-Type", "application/octet-stream");
  if (reading.unsized) {
    CAY_CO_TRY(call.response.begin(std::move(head)));
    co_return co_await streamUnsized(call, service, std::move(reading));
  }
  head.fields.add("Content-Length", std::to_string(reading.head.size() + reading.length));
  CAY_CO_TRY(call.response.begin(std::move(head)));
  if (reading.length == 0) co_return co_await call.response.finish(reading.head);
  CAY_CO_TRY(co_await call.response.sendFile(reading.file.get(), reading.offset, reading.length));
  co_return co_await call.response.finish();
}

net::Task<Result<>> writeFile(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"PUT"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  CAY_CO_ASSIGN(const auto mode, modeOf(call));
  CAY_CO_ASSIGN(const auto offset, call.query.getUint("offset"));
  CAY_CO_ASSIGN(const auto truncateTo, call.query.getUint("truncate_to"));
  if (offset) {
    const files::RangeOptions options{.offset = *offset, .truncateTo = truncateTo, .mode = mode};
    co_return co_await writeRange(call, service, std::move(path), options);
  }
  if (truncateTo) co_return fail(Code::kInvalid, "truncate_to needs an offset");
  co_return co_await writeWhole(call, service, std::move(path), mode);
}

}  // namespace cay::host
