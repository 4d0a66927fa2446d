#include "net/request_body.h"

namespace cay::net {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Arms the deadline for one wait, also when a cancelled task unwinds.
class Armed {
 public:
  Armed(Deadline& deadline, const std::optional<Millis>& delay) : deadline_(deadline) {
    if (delay) deadline_.arm(*delay);
  }
  ~Armed() { deadline_.disarm(); }
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;

 private:
  Deadline& deadline_;
};

}  // namespace

RequestBody::RequestBody(const RequestHead& head, Wire& wire, Deadline& deadline, Millis timeout)
    : wire_(wire),
      deadline_(deadline),
      timeout_(timeout),
      continueDue_(head.expectContinue),
      reader_(wire, {head.framing, head.contentLength}) {}

Task<Result<size_t>> RequestBody::read(std::span<char> buffer) {
  if (complete()) co_return 0;
  if (failed_) co_return fail(Code::kClosed, "the request body is broken");
  if (continueDue_ && wire_.input().empty()) {
    continueDue_ = false;
    // What cannot be sent shows in the read that follows.
    (void)co_await wire_.send({kContinue});
  }
  const Armed armed(deadline_, timeout_);
  auto count = co_await reader_.read(buffer);
  if (!count) {
    failed_ = true;
    if (deadline_.expired()) {
      co_return fail(Code::kTimeout, "the request body stopped arriving");
    }
  }
  co_return count;
}

void RequestBody::answerBegun() {
  continueDue_ = false;
  timeout_.reset();
}

}  // namespace cay::net
