// What a keeper says, and what the host's picture of the sandbox becomes by it.
#include <algorithm>

#include "base/log.h"
#include "sandbox/sandbox.h"

namespace cay::sandbox {

void Sandbox::onPacket(sys::Packet packet) {
  Reader in(packet.data);
  const auto kind = in.get<Message>();
  switch (kind) {
    case Message::kHello:
      return onHello(in, packet.take());
    case Message::kRefused:
      refusal_ = in.text();
      return;
    case Message::kReady:
      return onReady();
    case Message::kRoot:
    case Message::kSocket:
      return onAnswer(kind, packet.take());
    default:
      break;
  }
  const std::string_view id = in.text();
  if (kind == Message::kStdin) {
    const bool open = in.get<bool>();
    return onStdin(id, open, packet.take());
  }
  if (const ExecPtr exec = table().find(id)) onExec(kind, exec, in);
}

void Sandbox::onHello(Reader& in, const Fd& pidfd) {
  // Once, and first of all, when nothing has run behind its walls: who gets hold of it later does
  // not name another process to be killed in its place.
  if (ready_) return;
  const auto protocol = in.get<uint32_t>();
  mechanism_ = in.text();
  whyNoCgroups_ = in.text();
  if (protocol != kKeeperProtocol) {
    log(Level::kWarn, "the running keeper is of another version",
        {{"protocol", int64_t{protocol}}});
  }
  if (auto mark = KeeperMark::of(pidfd)) {
    keeper_ = *mark;
  } else {
    log(Level::kError, "a keeper's process is not known", {{"error", mark.error().message}});
  }
  keeperChanged_.notifyAll();
}

void Sandbox::onReady() {
  ready_ = true;
  for (const ExecPtr& exec : table().live()) {
    if (exec->recovered) table().lose(exec, Cause::kHostLost);
  }
  keeperChanged_.notifyAll();
}

void Sandbox::onAnswer(Message kind, Fd fd) {
  const auto asked =
      std::ranges::find_if(asks_, [&](const auto& one) { return one->answer == kind; });
  if (asked == asks_.end()) return;
  (*asked)->result = fd.valid() ? Result<Fd>(std::move(fd))
                                : fail(Code::kExhausted, "descriptors or sockets have run out");
  (*asked)->answered.notifyAll();
  asks_.erase(asked);
}

void Sandbox::onStdin(std::string_view id, bool open, Fd fd) {
  if (const auto asked = stdinAnswers_.find(std::string(id)); asked != stdinAnswers_.end()) {
    asked->second = open ? std::move(fd) : Fd();
  }
  stdinEvent_.notifyAll();
}

void Sandbox::onExec(Message kind, const ExecPtr& exec, Reader& in) {
  switch (kind) {
    case Message::kLive:
      exec->recovered = false;
      table().revive(exec);
      exec->pid = in.get<int32_t>();
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      break;
    case Message::kStarted:
      exec->pid = in.get<int32_t>();
      break;
    case Message::kStartFailed: {
      StartFailure failure;
      failure.fault = in.get<StartFault>();
      failure.exitCode = in.get<int32_t>();
      failure.message = in.text();
      onStartFailed(exec, std::move(failure));
      break;
    }
    case Message::kProgress:
      exec->pid = in.get<int32_t>();
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      ++exec->progressCount;
      break;
    case Message::kExit:
      exec->exit = getExit(in);
      exec->pid = exec->exit->pid;
      exec->lostFrom = getOffsets(in);
      for (int stream = 0; stream < kStreams; ++stream) {
        exec->totals.at[stream] =
            std::max(exec->totals.at[stream], exec->exit->outputBytes[stream]);
      }
      ++exec->progressCount;
      if (in.get<bool>()) table().end(exec);
      break;
    case Message::kGone:
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      if (exec->exit) {
        table().end(exec);
      } else {
        table().lose(exec, Cause::kHostLost);  // gone, and it was never said how
      }
      break;
    default:
      return;
  }
  exec->changed.notifyAll();
}

void Sandbox::onStartFailed(const ExecPtr& exec, StartFailure failure) {
  ExitRecord record;
  record.cause = Cause::kStartFailed;
  record.exitCode = failure.exitCode;
  record.error = failure.message;
  const bool kept = failure.fault == StartFault::kCommand && exec->kind == Kind::kExec;
  exec->failure = std::move(failure);
  if (kept) {
    record.outputBytes[kStderr] = record.error.size() + 1;
    exec->totals.at[kStderr] = record.outputBytes[kStderr];
  }
  // Also where nothing is kept of it: somebody may have been told before that it runs.
  exec->exit = std::move(record);
  if (kept) {
    table().end(exec);
  } else {
    table().discard(exec);
  }
}

void Sandbox::onKeeperLost() {
  link_.reset();
  if (!ready_ && refusal_.empty()) refusal_ = "the keeper ended before it was at work";
  ready_ = true;
  orphans_ = !closing_;
  closing_ = false;
  size_t lost = 0;
  const auto live = table_ ? table_->live() : std::vector<ExecPtr>();
  for (const ExecPtr& exec : live) {
    if (!refusal_.empty() && !exec->recovered && !gone_) {
      onStartFailed(exec, {.fault = StartFault::kShortage, .exitCode = 0, .message = refusal_});
      exec->changed.notifyAll();
    } else {
      table_->lose(exec, gone_ ? Cause::kKilled : Cause::kHostLost);
      ++lost;
    }
  }
  if (lost > 0 && !gone_) {
    log(Level::kError, "the keeper died", {{"execs_lost", static_cast<int64_t>(lost)}});
  }
  for (const auto& asked : asks_) {
    asked->result =
        gone_ ? Result<Fd>(std::unexpected(*gone_))
              : fail(Code::kExhausted, refusal_.empty() ? "the keeper ended in between" : refusal_);
    asked->answered.notifyAll();
  }
  asks_.clear();
  stdinEvent_.notifyAll();
  keeperChanged_.notifyAll();
  if (options_.onKeeperLost) options_.onKeeperLost();
}

}  // namespace cay::sandbox
