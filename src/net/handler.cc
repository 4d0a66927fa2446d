#include "net/handler.h"

#include <algorithm>

#include "net/status.h"

namespace cay::net {

Task<Result<std::string>> readAll(const RequestHead& head, Body& body, size_t limit) {
  constexpr size_t kStep = size_t{16} * 1024;
  const auto tooLarge = [&] {
    return fail(Code::kTooLarge,
                "the request body is larger than " + std::to_string(limit) + " bytes");
  };
  const bool announced = head.framing == Framing::kLength;
  if (announced && head.contentLength > limit) co_return tooLarge();
  std::string text;
  size_t size = 0;
  for (;;) {
    // An announced length decides the size only as far as bytes really come, so that an
    // announcement alone costs no memory.
    const size_t step = announced ? head.contentLength - size + 1 : kStep;
    text.resize(size + std::min(step, std::max(kStep, size)));
    CAY_CO_ASSIGN(const size_t count, co_await body.read(std::span(text).subspan(size)));
    if (count == 0) break;
    size += count;
    if (size > limit) co_return tooLarge();
  }
  text.resize(size);
  co_return text;
}

Task<Result<>> send(Response& response, ResponseHead head, std::string_view body) {
  CAY_CO_TRY(response.begin(std::move(head)));
  co_return co_await response.finish(body);
}

Task<Result<>> sendJson(Response& response, int status, std::string_view json) {
  ResponseHead head{.status = status, .fields = {}};
  head.fields.add("Content-Type", "application/json");
  CAY_CO_TRY(response.begin(std::move(head)));
  co_return co_await response.finish(json);
}

Task<Result<>> sendError(Response& response, const Error& error) {
  const std::string body = errorBody(error.message);
  co_return co_await sendJson(response, httpStatus(error.code), body);
}

}  // namespace cay::net
