#include "host/body_pump.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <span>
#include <tuple>

namespace cay::host {
namespace {

constexpr size_t kBufferBytes = size_t{512} << 10;

}  // namespace

BodyPump::BodyPump(const net::RequestHead& head, net::Body& body, net::WorkerPool& workers)
    : body_(body), workers_(workers) {
  if (head.framing == net::Framing::kLength) announced_ = head.contentLength;
  if (head.framing == net::Framing::kNone) announced_ = 0;
}

std::shared_ptr<const std::string_view> BodyPump::first() const {
  struct Held {
    std::shared_ptr<Buffer> buffer;
    std::string_view view;
  };
  auto held = std::make_shared<Held>(buffers_[0]);
  held->view = {held->buffer->bytes.get(), held->buffer->size};
  return {held, &held->view};
}

net::Task<Result<>> BodyPump::begin() {
  begun_ = true;
  return fill(0);
}

net::Task<Result<>> BodyPump::fill(size_t index) {
  if (!buffers_[index]) {
    const uint64_t left = announced_ ? *announced_ - received_ : kBufferBytes;
    auto fresh = std::make_shared<Buffer>();
    fresh->capacity = std::clamp<uint64_t>(left, 1, kBufferBytes);
    fresh->bytes = std::make_unique_for_overwrite<char[]>(fresh->capacity);
    buffers_[index] = std::move(fresh);
  }
  Buffer& buffer = *buffers_[index];
  buffer.size = 0;
  ended_ = announced_ && received_ == *announced_;
  while (!ended_ && buffer.size < buffer.capacity) {
    const std::span<char> room(buffer.bytes.get() + buffer.size, buffer.capacity - buffer.size);
    CAY_CO_ASSIGN(const size_t got, co_await body_.read(room));
    buffer.size += got;
    received_ += got;
    ended_ = got == 0 || (announced_ && received_ == *announced_);
  }
  co_return Result<>();
}

net::Task<Result<>> BodyPump::feed(BlockingSink sink) {
  using namespace boost::asio::experimental::awaitable_operators;
  if (!begun_) CAY_CO_TRY(co_await begin());
  const auto shared = std::make_shared<BlockingSink>(std::move(sink));
  for (size_t current = 0;; current = 1 - current) {
    auto write = [buffer = buffers_[current], shared] {
      return (*shared)({buffer->bytes.get(), buffer->size});
    };
    if (ended_) co_return co_await workers_.run(std::move(write));
    auto [written, filled] = co_await (workers_.run(std::move(write)) && fill(1 - current));
    CAY_CO_TRY(written);
    CAY_CO_TRY(filled);
  }
}

}  // namespace cay::host
