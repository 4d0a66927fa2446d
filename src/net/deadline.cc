#include "net/deadline.h"

#include <utility>

namespace cay::net {

void DeadlineSweep::add(Deadline& deadline) {
  deadline.index_ = deadlines_.size();
  deadlines_.push_back(&deadline);
  schedule();
}

void DeadlineSweep::remove(Deadline& deadline) {
  Deadline* last = deadlines_.back();
  deadlines_[deadline.index_] = last;
  last->index_ = deadline.index_;
  deadlines_.pop_back();
}

void DeadlineSweep::schedule() {
  if (scheduled_ || deadlines_.empty()) return;
  scheduled_ = true;
  timer_.expires_after(interval_);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    self->scheduled_ = false;
    self->sweep();
    self->schedule();
  });
}

void DeadlineSweep::sweep() {
  const int64_t now = monotonicMs();
  for (Deadline* deadline : deadlines_) {
    if (deadline->at_ <= now) deadline->expireNow();
  }
}

Deadline::Deadline(std::shared_ptr<DeadlineSweep> sweep, Socket& socket)
    : sweep_(std::move(sweep)), socket_(socket) {
  sweep_->add(*this);
}

Deadline::~Deadline() {
  sweep_->remove(*this);
}

void Deadline::expireNow() {
  // Left in the past: if no operation was pending just now, the next sweep cancels the next one.
  at_ = 0;
  expired_ = true;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace cay::net
