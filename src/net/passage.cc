#include "net/passage.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "net/http_client.h"
#include "net/relay.h"

namespace cay::net {
namespace {

using namespace boost::asio::experimental::awaitable_operators;

constexpr size_t kPieceBytes = size_t{32} * 1024;

std::unexpected<Error> clientHasGone() {
  return fail(Code::kClosed, "the client closed the connection");
}

// One request on its way through; lives in pass().
class Passage {
 public:
  Passage(const RequestHead& head, Body& body, Response& response, Onward onward)
      : head_(head),
        body_(body),
        response_(response),
        onward_(std::move(onward)),
        upgrade_(wantsUpgrade(head)) {}

  Task<Result<>> run(const StreamSource& source) {
    // A dial can take long where a backlog is full; it need not outlive the client.
    std::optional<Result<Stream>> stream;
    co_await (dial(source, stream) || response_.disconnected());
    if (!stream) co_return clientHasGone();
    if (!*stream) co_return std::unexpected(std::move(*stream).error());
    inner_ = ClientExchange::over(**std::move(stream));

    // The inner server may answer before it has read the body, or instead of reading it.
    auto outcome = co_await (answer() || feed());
    if (auto* answered = std::get_if<0>(&outcome)) {
      if (!*answered || !switched_) co_return std::move(*answered);
      co_return co_await talk();
    }
    co_return std::unexpected(std::get<1>(std::move(outcome)));
  }

 private:
  static Task<> dial(const StreamSource& source, std::optional<Result<Stream>>& stream) {
    stream.emplace(co_await source());
  }

  // Sends the request, then waits for the client's end. Gives the reason why nothing more can come
  // from the client.
  Task<Error> feed() {
    if (auto sent = co_await sendRequest(); !sent) co_return std::move(sent).error();
    co_await response_.disconnected();
    co_return clientHasGone().error();
  }

  // Fails only for reasons that lie with the client. An inner server that takes no more may still
  // have an answer.
  Task<Result<>> sendRequest() {
    if (!co_await inner_->sendHead(head_.method, onward_.target,
                                   innerRequestFields(head_, onward_, upgrade_), head_.framing,
                                   head_.contentLength)) {
      co_return Result<>();
    }
    if (head_.framing == Framing::kNone) co_return Result<>();
    const auto memory = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    for (;;) {
      CAY_CO_ASSIGN(const size_t count, co_await body_.read({memory.get(), kPieceBytes}));
      if (count == 0) break;
      if (!co_await inner_->sendBody({memory.get(), count})) co_return Result<>();
    }
    (void)co_await inner_->endBody(innerTrailers(body_.trailers(), onward_));
    co_return Result<>();
  }

  Task<Result<>> answer() {
    auto head = co_await inner_->readHead(head_.method == "HEAD");
    if (!head) co_return std::unexpected(std::move(head).error().wrap(onward_.server));
    const Framing framing = inner_->framing();
    head->fields = outerResponseFields(*head, framing);
    if (onward_.amend) onward_.amend(*head);
    switched_ = head->status == 101;
    if (switched_) {
      if (!upgrade_) co_return fail(Code::kUnreachable, "the server switched protocols unasked");
      switchHead_ = *std::move(head);
      co_return Result<>();
    }
    const bool lengthKnown = head->fields.count("content-length") > 0;
    CAY_CO_TRY(response_.begin(*std::move(head)));
    // Where the length is unknown the body may be a slow stream, whose head must not wait for it.
    if (!lengthKnown) {
      CAY_CO_TRY(co_await response_.write({}));
    }
    const auto memory = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    for (;;) {
      CAY_CO_ASSIGN(const size_t count, co_await inner_->readBody({memory.get(), kPieceBytes}));
      if (count == 0) break;
      CAY_CO_TRY(co_await response_.write({memory.get(), count}));
    }
    if (framing != Framing::kChunked) co_return co_await response_.finish();
    co_return co_await response_.finishWithTrailers(inner_->trailers());
  }

  Task<Result<>> talk() {
    CAY_CO_ASSIGN(Stream outer, co_await response_.upgrade(std::move(switchHead_)));
    Stream inner = inner_->release();
    co_await relay(outer, inner);
    co_return Result<>();
  }

  const RequestHead& head_;
  Body& body_;
  Response& response_;
  Onward onward_;
  bool upgrade_;
  bool switched_ = false;
  ResponseHead switchHead_;
  std::unique_ptr<ClientExchange> inner_;
};

}  // namespace

Task<Result<>> pass(const RequestHead& head, Body& body, Response& response, Onward onward,
                    StreamSource source) {
  Passage passage(head, body, response, std::move(onward));
  co_return co_await passage.run(source);
}

}  // namespace cay::net
