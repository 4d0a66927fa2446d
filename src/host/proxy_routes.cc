#include "host/proxy_routes.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "host/proxy_fields.h"
#include "net/http_client.h"
#include "net/stream.h"

namespace cay::host {
namespace {

using namespace boost::asio::experimental::awaitable_operators;

constexpr size_t kPieceBytes = size_t{32} * 1024;

std::unexpected<Error> clientHasGone() {
  return fail(Code::kClosed, "the client closed the connection");
}

// One request on its way through; lives in proxy().
class Passage {
 public:
  Passage(Call& call, ProxyTarget target)
      : call_(call), target_(std::move(target)), upgrade_(wantsUpgrade(call.head)) {}

  net::Task<Result<>> run(net::Dialer& dialer) {
    // A dial can take long where a backlog is full; it need not outlive the client.
    std::optional<Result<net::Stream>> stream;
    co_await (dial(dialer, stream) || call_.response.disconnected());
    if (!stream) co_return clientHasGone();
    if (!*stream) co_return std::unexpected(std::move(*stream).error());
    inner_ = net::ClientExchange::over(**std::move(stream));

    // The inner server may answer before it has read the body, or instead of reading it.
    auto outcome = co_await (answer() || feed());
    if (auto* answered = std::get_if<0>(&outcome)) {
      if (!*answered || !switched_) co_return std::move(*answered);
      co_return co_await talk();
    }
    co_return std::unexpected(std::get<1>(std::move(outcome)));
  }

 private:
  net::Task<> dial(net::Dialer& dialer, std::optional<Result<net::Stream>>& stream) {
    stream.emplace(co_await dialer.dial(target_.port));
  }

  // Sends the request, then waits for the client's end. Gives the reason why nothing more can come
  // from the client.
  net::Task<Error> feed() {
    if (auto sent = co_await sendRequest(); !sent) co_return std::move(sent).error();
    co_await call_.response.disconnected();
    co_return clientHasGone().error();
  }

  // Fails only for reasons that lie with the client. An inner server that takes no more may still
  // have an answer.
  net::Task<Result<>> sendRequest() {
    const net::RequestHead& head = call_.head;
    if (!co_await inner_->sendHead(head.method, target_.target,
                                   innerRequestFields(head, target_.port, upgrade_), head.framing,
                                   head.contentLength)) {
      co_return Result<>();
    }
    if (head.framing == net::Framing::kNone) co_return Result<>();
    const auto memory = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    for (;;) {
      CAY_CO_ASSIGN(const size_t count, co_await call_.body.read({memory.get(), kPieceBytes}));
      if (count == 0) break;
      if (!co_await inner_->sendBody({memory.get(), count})) co_return Result<>();
    }
    (void)co_await inner_->endBody(innerTrailers(call_.body.trailers()));
    co_return Result<>();
  }

  net::Task<Result<>> answer() {
    auto head = co_await inner_->readHead(call_.head.method == "HEAD");
    if (!head) {
      co_return std::unexpected(
          std::move(head).error().wrap("port " + std::to_string(target_.port)));
    }
    const net::Framing framing = inner_->framing();
    head->fields = outerResponseFields(*head, framing);
    switched_ = head->status == 101;
    if (switched_) {
      if (!upgrade_) co_return fail(Code::kUnreachable, "the server switched protocols unasked");
      switchHead_ = *std::move(head);
      co_return Result<>();
    }
    const bool lengthKnown = head->fields.count("content-length") > 0;
    CAY_CO_TRY(call_.response.begin(*std::move(head)));
    // Where the length is unknown the body may be a slow stream, whose head must not wait for it.
    if (!lengthKnown) {
      CAY_CO_TRY(co_await call_.response.write({}));
    }
    const auto memory = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    for (;;) {
      CAY_CO_ASSIGN(const size_t count, co_await inner_->readBody({memory.get(), kPieceBytes}));
      if (count == 0) break;
      CAY_CO_TRY(co_await call_.response.write({memory.get(), count}));
    }
    if (framing != net::Framing::kChunked) co_return co_await call_.response.finish();
    co_return co_await call_.response.finishWithTrailers(inner_->trailers());
  }

  net::Task<Result<>> talk() {
    CAY_CO_ASSIGN(net::Stream outer, co_await call_.response.upgrade(std::move(switchHead_)));
    net::Stream inner = inner_->release();
    co_await net::relay(outer, inner);
    co_return Result<>();
  }

  Call& call_;
  ProxyTarget target_;
  bool upgrade_;
  bool switched_ = false;
  net::ResponseHead switchHead_;
  std::unique_ptr<net::ClientExchange> inner_;
};

}  // namespace

net::Task<Result<>> proxy(Call& call, net::Dialer& dialer, uint16_t ownPort) {
  CAY_CO_ASSIGN(ProxyTarget target, proxyTarget(call.path, call.head));
  if (target.port == ownPort) {
    co_return fail(Code::kDenied, "port " + std::to_string(ownPort) + " is this server itself");
  }
  Passage passage(call, std::move(target));
  co_return co_await passage.run(dialer);
}

}  // namespace cay::host
