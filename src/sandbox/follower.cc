#include "sandbox/follower.h"

#include <algorithm>

#include "sandbox/sandbox.h"

namespace cay::sandbox {
namespace {

constexpr uint64_t kPieceBytes = 64 * 1024;

}  // namespace

Follower::Follower(Sandbox& sandbox, ExecPtr exec, Offsets from, bool listening)
    : sandbox_(sandbox),
      exec_(std::move(exec)),
      at_(from),
      progressBefore_(exec_->progressCount),
      listening_(listening) {
  exec_->followers.push_back(this);
  sandbox_.updateWindow(*exec_, Sandbox::Tell::kAlways);
  if (listening_) sandbox_.changeListeners(*exec_, +1);
}

Follower::~Follower() {
  std::erase(exec_->followers, this);
  sandbox_.updateWindow(*exec_, Sandbox::Tell::kIfMoved);
  if (listening_) sandbox_.changeListeners(*exec_, -1);
}

net::Task<> Follower::sync() {
  while (exec_->live && exec_->progressCount == progressBefore_) co_await exec_->changed.wait();
  atSync_ = exec_->totals;
}

uint64_t Follower::target(StreamId stream) const {
  const uint64_t total = exec_->totals.at[stream];
  if (!exec_->exit) return total;
  return std::min(total, std::max(exec_->exit->outputBytes[stream], atSync_.at[stream]));
}

bool Follower::atExit() const {
  return exec_->exit && at_.at[kStdout] >= target(kStdout) && at_.at[kStderr] >= target(kStderr);
}

bool Follower::pastSync() const {
  return at_.at[kStdout] >= atSync_.at[kStdout] && at_.at[kStderr] >= atSync_.at[kStderr];
}

Result<std::optional<Follower::Piece>> Follower::next() {
  for (const StreamId stream : {kStdout, kStderr}) {
    uint64_t& at = at_.at[stream];
    const uint64_t end = target(stream);
    if (at >= end) continue;
    if (!log_) {
      CAY_ASSIGN(log_, sandbox_.openLog(*exec_));
    }
    const uint64_t from = at;
    const auto gap = [&](uint64_t to) {
      at = to;
      sandbox_.updateWindow(*exec_, Sandbox::Tell::kIfMoved);
      return Piece{.stream = stream, .from = from, .data = {}, .to = to};
    };
    if (at >= exec_->lostFrom.at[stream]) return gap(end);
    // The keeper may have gone on up to the limit it was given, and may have overwritten that much.
    const uint64_t limit = exec_->limitSent.at[stream];
    const uint64_t reach = exec_->live && limit != kNoLimit
                               ? std::max(limit, exec_->totals.at[stream])
                               : exec_->totals.at[stream];
    const Kept kept = keptOf(log_->shape(), reach);
    if (at >= kept.headEnd && at < kept.tailStart) return gap(std::min(kept.tailStart, end));
    const uint64_t stop =
        std::min({end, exec_->lostFrom.at[stream], at < kept.headEnd ? kept.headEnd : end});
    buffer_.resize(std::min(stop - at, kPieceBytes));
    CAY_ASSIGN(const size_t count, log_->read(stream, at, buffer_));
    if (count == 0) return fail(Code::kInternal, "the output log is shorter than it should be");
    at += count;
    sandbox_.updateWindow(*exec_, Sandbox::Tell::kIfMoved);
    return Piece{.stream = stream, .from = from, .data = {buffer_.data(), count}, .to = at};
  }
  return std::nullopt;
}

}  // namespace cay::sandbox
