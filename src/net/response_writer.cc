#include "net/response_writer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "net/field_text.h"
#include "net/framing.h"
#include "net/page_cache.h"
#include "net/status.h"
#include "net/worker_pool.h"

namespace cay::net {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kFileSlice = size_t{1024} * 1024;

bool isServerOwned(std::string_view name) {
  return equalIgnoreCase(name, "connection") || equalIgnoreCase(name, "transfer-encoding") ||
         equalIgnoreCase(name, "keep-alive");
}

}  // namespace

Result<> ResponseWriter::ready() const {
  if (failed_) return fail(Code::kClosed, "the connection to the client is broken");
  if (!begun_ || finished_) return fail(Code::kInternal, "the answer is not open for writing");
  return {};
}

Result<> ResponseWriter::begin(ResponseHead head) {
  if (begun_) return fail(Code::kInternal, "the answer has already begun");
  for (const Field& field : head.fields) {
    if (isServerOwned(field.name) || !isFieldName(field.name) || !isFieldValue(field.value)) {
      return fail(Code::kInternal, "an answer may not carry the field " + quoted(field.name));
    }
  }
  if (const size_t lengths = head.fields.count("content-length"); lengths > 0) {
    const auto length = parseUint(*head.fields.get("content-length"));
    if (lengths > 1 || !length) return fail(Code::kInternal, "the answer has a bad Content-Length");
    framing_ = Framing::kLength;
    left_ = *length;
  }
  silent_ = at_.request.method == "HEAD" || isBodyless(head.status);
  head_ = std::move(head);
  begun_ = true;
  return {};
}

void ResponseWriter::chooseFraming(std::optional<uint64_t> length) {
  if (headSent_ || framing_ == Framing::kLength) return;
  if (isBodyless(head_.status)) {
    framing_ = Framing::kNone;
  } else if (length) {
    framing_ = Framing::kLength;
    left_ = *length;
    char digits[20];
    const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), *length);
    head_.fields.add("Content-Length", std::string_view(digits, end));
  } else {
    framing_ = at_.request.minorVersion == 0 ? Framing::kUntilClose : Framing::kChunked;
  }
}

void ResponseWriter::startPiece() {
  std::string& out = at_.scratch;
  out.clear();
  if (headSent_) return;
  keepAlive_ = at_.request.keepAlive && !at_.stopping && at_.body.complete() &&
               framing_ != Framing::kUntilClose;
  appendStatusLine(out, head_.status);
  appendFields(out, head_.fields);
  if (framing_ == Framing::kChunked) out.append("Transfer-Encoding: chunked\r\n");
  if (!keepAlive_) {
    out.append("Connection: close\r\n");
  } else if (at_.request.minorVersion == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append(kLineEnd);
  headSent_ = true;
  at_.body.answerBegun();
}

Result<> ResponseWriter::account(uint64_t size) {
  if (silent_ || framing_ != Framing::kLength) return {};
  if (size > left_) {
    failed_ = true;
    return fail(Code::kInternal, "the answer is longer than its Content-Length");
  }
  left_ -= size;
  return {};
}

Task<Result<>> ResponseWriter::transmit(Pieces pieces, sys::More more, const StallLimit* stall) {
  if (pieces.empty()) co_return Result<>();
  // If the awaiting task is cancelled in the middle, the rest of this piece is never sent.
  failed_ = true;
  const int sent = co_await at_.wire.send(pieces, more, stall);
  if (sent != 0) co_return fail(Code::kClosed, "the client closed the connection");
  failed_ = false;
  co_return Result<>();
}

Task<Result<>> ResponseWriter::write(std::string_view data) {
  CAY_CO_TRY(ready());
  chooseFraming(std::nullopt);
  CAY_CO_TRY(account(data.size()));
  startPiece();
  std::string& out = at_.scratch;
  if (silent_ || data.empty()) co_return co_await transmit({out}, sys::More::kNo, nullptr);
  if (framing_ != Framing::kChunked) {
    co_return co_await transmit({out, data}, sys::More::kNo, nullptr);
  }
  appendChunkSize(out, data.size());
  co_return co_await transmit({out, data, kLineEnd}, sys::More::kNo, nullptr);
}

Task<Result<>> ResponseWriter::finish(std::string_view last) {
  return end(last, {});
}

Task<Result<>> ResponseWriter::finishWithTrailers(const Fields& trailers) {
  CAY_CO_TRY(ready());
  chooseFraming(std::nullopt);
  std::string text;
  appendTrailers(text, trailers);
  co_return co_await end({}, text);
}

Task<Result<>> ResponseWriter::end(std::string_view last, std::string_view trailers) {
  CAY_CO_TRY(ready());
  const bool whole = !headSent_;
  if (whole) {
    // The handler is done with the body, and an answer that leaves now can still say what follows.
    at_.body.dropReceivedRest();
    if (framing_ != Framing::kChunked) chooseFraming(last.size());
  }
  CAY_CO_TRY(account(last.size()));
  if (!silent_ && framing_ == Framing::kLength && left_ > 0) {
    failed_ = true;
    co_return fail(Code::kInternal, "the answer is shorter than its Content-Length");
  }
  startPiece();
  std::string& out = at_.scratch;
  std::string tail;
  if (silent_) {
    last = {};
  } else if (framing_ == Framing::kChunked) {
    if (!last.empty()) {
      appendChunkSize(out, last.size());
      tail.append(kLineEnd);
    }
    tail.append("0\r\n").append(trailers).append(kLineEnd);
  }
  finished_ = true;
  co_return co_await transmit({out, last, tail}, sys::More::kNo, whole ? &at_.stall : nullptr);
}

Task<Result<>> ResponseWriter::sendFile(int file, uint64_t offset, uint64_t length) {
  CAY_CO_TRY(ready());
  chooseFraming(std::nullopt);
  CAY_CO_TRY(account(length));
  startPiece();
  std::string& out = at_.scratch;
  if (silent_ || length == 0) co_return co_await transmit({out}, sys::More::kNo, nullptr);
  const bool chunked = framing_ == Framing::kChunked;
  if (chunked) appendChunkSize(out, length);
  // The head waits in the kernel for the first bytes of the file.
  CAY_CO_TRY(co_await transmit({out}, sys::More::kYes, nullptr));
  CAY_CO_TRY(co_await transmitFile(file, offset, length));
  if (!chunked) co_return Result<>();
  co_return co_await transmit({kLineEnd}, sys::More::kNo, nullptr);
}

Task<Result<>> ResponseWriter::transmitFile(int file, uint64_t offset, uint64_t length) {
  failed_ = true;
  const uint64_t end = offset + length;
  uint64_t warm = offset;  // the file is in memory up to here
  while (offset < end) {
    if (offset == warm) {
      const size_t slice = std::min<uint64_t>(end - offset, kFileSlice);
      if (at_.workers != nullptr && !isCached(file, offset, slice)) {
        // The worker reads from a descriptor of its own: the caller's may be closed by then.
        auto warmUp = [own = duplicate(file), offset, slice] { readIn(own.get(), offset, slice); };
        co_await at_.workers->run(std::move(warmUp));
      }
      warm = offset + slice;
    }
    const ssize_t sent =
        sys::sendFile(at_.wire.socket().native_handle(), file, offset, warm - offset);
    if (sent == -EAGAIN) {
      if (co_await at_.wire.writable() != 0) co_return fail(Code::kClosed, "the client has gone");
    } else if (sent == 0) {
      co_return fail(Code::kInternal, "the file became shorter while it was being sent");
    } else if (sent < 0) {
      co_return failSys("sendfile", static_cast<int>(-sent));
    } else {
      offset += static_cast<uint64_t>(sent);
      if (at_.wire.burstEnds(static_cast<size_t>(sent))) co_await at_.wire.yield();
    }
  }
  failed_ = false;
  co_return Result<>();
}

Task<Result<Stream>> ResponseWriter::upgrade(ResponseHead head) {
  return handOver(std::move(head), "Connection: Upgrade\r\n");
}

Task<Result<Stream>> ResponseWriter::tunnel() {
  if (at_.request.method != "CONNECT") {
    co_return fail(Code::kInternal, "only CONNECT becomes a tunnel");
  }
  co_return co_await handOver({}, {});
}

Task<Result<Stream>> ResponseWriter::handOver(ResponseHead head, std::string_view lastField) {
  if (begun_ || failed_) co_return fail(Code::kInternal, "the answer has already begun");
  if (!at_.body.dropReceivedRest()) {
    co_return fail(Code::kInvalid, "a request that changes the protocol may not have a body");
  }
  CAY_CO_TRY(begin(std::move(head)));
  std::string& out = at_.scratch;
  out.clear();
  appendStatusLine(out, head_.status);
  appendFields(out, head_.fields);
  out.append(lastField).append(kLineEnd);
  headSent_ = finished_ = true;
  CAY_CO_TRY(co_await transmit({out}, sys::More::kNo, nullptr));
  handedOver_ = true;
  co_return at_.wire.release();
}

ResponseWriter::Outcome ResponseWriter::outcome() const {
  if (handedOver_) return Outcome::kHandedOver;
  if (failed_) return Outcome::kCut;
  if (!begun_) return Outcome::kNothing;
  if (!finished_) return Outcome::kCut;
  return keepAlive_ ? Outcome::kKeepAlive : Outcome::kClose;
}

}  // namespace cay::net
