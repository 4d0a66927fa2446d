#include "sandbox/kept_exec.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/clock.h"
#include "sandbox/paths.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kKillAgainMs = 1'000;
constexpr pid_t kNoGroup = -1;
constexpr int64_t kTermGraceMs = 300;  // between TERM and KILL for time limits and lost clients
constexpr int64_t kLineQuietMs = 200;  // after which an unfinished line is taken for a prompt

StartFailure shortage(const Error& error) {
  return {StartFault::kShortage, 0, "cannot start the command: " + error.message};
}

// The child's end of its standard input and ours; neither where it has none.
struct StdinEnds {
  Fd theirs;
  Fd ours;
};

Result<StdinEnds> makeStdin(Stdin mode) {
  StdinEnds ends;
  if (mode == Stdin::kNull) return ends;
  CAY_ASSIGN(sys::Pipe pipe, sys::makePipe());
  CAY_TRY(sys::setNonBlocking(pipe.write.get()));
  ends.theirs = std::move(pipe.read);
  ends.ours = std::move(pipe.write);
  return ends;
}

uint64_t waiting(int pipe) {
  int bytes = 0;
  return ::ioctl(pipe, FIONREAD, &bytes) == 0 ? static_cast<uint64_t>(bytes) : 0;
}

}  // namespace

KeptExec::KeptExec(const ExecSpec& spec, LogWriter log, std::unique_ptr<ProcessTree> tree)
    : id_(spec.id),
      onDisconnect_(spec.onDisconnect),
      log_(std::move(log)),
      tree_(std::move(tree)) {}

std::expected<std::unique_ptr<KeptExec>, StartFailure> KeptExec::start(const Surroundings& around,
                                                                       const ExecSpec& spec,
                                                                       StdinData stdinData) {
  auto tree = around.trees.make();
  if (!tree) return std::unexpected(shortage(tree.error()));
  auto input = makeStdin(spec.stdinMode);
  if (!input) return std::unexpected(shortage(input.error()));
  Fd theirs[kStreams];
  Fd ours[kStreams];
  for (int stream = 0; stream < kStreams; ++stream) {
    auto pipe = sys::makePipe();
    if (!pipe) return std::unexpected(shortage(pipe.error()));
    if (auto set = sys::setNonBlocking(pipe->read.get()); !set) {
      return std::unexpected(shortage(set.error()));
    }
    ours[stream] = std::move(pipe->read);
    theirs[stream] = std::move(pipe->write);
  }
  auto log = LogWriter::create(
      around.logFolder, spec.file, around.shape, spec.meta,
      spec.overwrite ? LogWriter::Existing::kOverwrite : LogWriter::Existing::kRefuse);
  if (!log) return std::unexpected(shortage(log.error()));

  std::unique_ptr<KeptExec> exec(new KeptExec(spec, std::move(*log), std::move(*tree)));
  if (spec.lines) {
    auto lines = LineLogWriter::open(around.logFolder, kLinesFolder, {});
    if (!lines) {
      (void)::unlinkat(around.logFolder, spec.file.c_str(), 0);
      return std::unexpected(shortage(lines.error()));
    }
    exec->lines_ = std::move(*lines);
  }
  exec->oom_ = &around.oom;
  exec->oomAtStart_ = around.oom.read();
  exec->forks_ = &around.forks;
  exec->forksAtStart_ = around.forks.read();
  exec->inside_ = around.inside;
  exec->alone_ = around.alone;
  exec->startedAt_ = monotonicMs();
  auto born =
      exec->tree_->start({.spec = spec,
                          .stdio = {input->theirs.valid() ? input->theirs.get() : around.null,
                                    theirs[kStdout].get(), theirs[kStderr].get()},
                          .intoCgroup = -1,
                          .openFiles = around.openFiles,
                          .inside = around.inside});
  if (!born) {
    if (born.error().fault == StartFault::kCommand) {
      exec->keep(kStderr, born.error().message + "\n");
      ExitRecord record;
      record.cause = Cause::kStartFailed;
      record.exitCode = born.error().exitCode;
      record.error = born.error().message;
      record.outputBytes[kStderr] = exec->log_.total(kStderr);
      (void)exec->log_.saveExit(record);
    } else {
      (void)::unlinkat(around.logFolder, spec.file.c_str(), 0);
    }
    return std::unexpected(std::move(born.error()));
  }
  exec->pid_ = born->pid;
  exec->pidfd_ = std::move(born->pidfd);
  if (exec->tree_->leaderIsOurs()) exec->io_ = sys::IoCounter(exec->pid_);
  for (int stream = 0; stream < kStreams; ++stream) exec->pipes_[stream] = std::move(ours[stream]);
  exec->stdin_ = std::move(input->ours);
  if (spec.stdinMode == Stdin::kData) {
    exec->stdinFile_ = std::move(stdinData.file);
    exec->stdinAt_ = stdinData.from;
    exec->stdinEnd_ = stdinData.to;
    exec->feedStdin();
  }
  if (spec.timeoutMs > 0) exec->timeoutAt_ = exec->startedAt_ + spec.timeoutMs;
  return exec;
}

bool KeptExec::wantsRead(StreamId stream) const {
  return pipes_[stream].valid() && log_.total(stream) < limits_.at[stream];
}

void KeptExec::readPipe(StreamId stream, std::span<char> buffer) {
  if (!wantsRead(stream)) return;
  const uint64_t room = limits_.at[stream] - log_.total(stream);
  const auto count =
      sys::readSome(pipes_[stream].get(), buffer.first(std::min<uint64_t>(buffer.size(), room)));
  if (!count && count.error().sys == EAGAIN) return;
  if (!count || *count == 0) {
    pipes_[stream].reset();
    flushLines();
    return;
  }
  keep(stream, std::string_view(buffer.data(), *count));
}

void KeptExec::keep(StreamId stream, std::string_view bytes) {
  log_.append(stream, bytes);
  if (!lines_) return;
  lines_->append(stream, bytes, wallUs());
  linesDueAt_ = lines_->waiting() ? monotonicMs() + kLineQuietMs : kNever;
}

void KeptExec::flushLines() {
  if (lines_) lines_->flush(wallUs());
  linesDueAt_ = kNever;
}

void KeptExec::feedStdin() {
  while (wantsWrite()) {
    const auto count =
        sys::sendFileSome(stdin_.get(), stdinFile_.get(), stdinAt_, stdinEnd_ - stdinAt_);
    if (!count && count.error().sys == EAGAIN) return;
    if (!count || *count == 0) break;  // the command has closed its input; the rest is nobody's
    stdinAt_ += *count;
  }
  stdinFile_.reset();
  closeStdin();
}

void KeptExec::end(Cause cause, int64_t graceMs, int64_t now) {
  if (!ending_ && leaderRuns()) ending_ = cause;
  if (graceMs > 0) askToEnd();
  killAt_ = std::min(killAt_, now + graceMs);
  if (graceMs == 0) onDeadline(now);
}

// The leader's group at once, which leaves no moment in which one of it could fork away. Others one
// by one: what they fork meanwhile is not asked, and killed with the rest.
void KeptExec::askToEnd() {
  signalGroup(SIGTERM);
  tree_->signalOutside(leaderRuns() ? pid_ : kNoGroup, SIGTERM);
}

void KeptExec::signalGroup(int number) {
  if (leaderRuns()) (void)sys::pidfdSignalGroup(pidfd_, pid_, number);
}

void KeptExec::setAttended(bool attended, int64_t now) {
  if (attended) {
    keptUntil_ = kNever;
  } else if (exitTaken_ || onDisconnect_ == OnDisconnect::kKeep) {
    // Nobody is owed anything.
  } else if (onDisconnect_ == OnDisconnect::kKeepShort) {
    keptUntil_ = now + kKeepShortMs;
  } else {
    end(Cause::kDisconnected, kTermGraceMs, now);
  }
}

void KeptExec::onLeaderEnd(const LeaderEnd& end, int64_t now) {
  if (leaderEnd_) return;
  leaderEnd_ = end;
  leaderEndedAt_ = now;
  timeoutAt_ = kNever;
  keptUntil_ = kNever;
  for (int stream = 0; stream < kStreams; ++stream) {
    leaderWrote_[stream] = log_.total(static_cast<StreamId>(stream));
    if (pipes_[stream].valid()) leaderWrote_[stream] += waiting(pipes_[stream].get());
  }
}

void KeptExec::onMinderLost() {
  if (leaderRuns()) (void)sys::pidfdSignalGroup(pidfd_, pid_, SIGKILL);
}

int64_t KeptExec::nextDeadline() const {
  int64_t at = std::min({timeoutAt_, keptUntil_, killAt_, linesDueAt_});
  if (leaderEnd_ && !graceOver_) at = std::min(at, leaderEndedAt_ + kPipeGraceMs);
  return at;
}

void KeptExec::onDeadline(int64_t now) {
  if (leaderEnd_ && now >= leaderEndedAt_ + kPipeGraceMs) graceOver_ = true;
  if (now >= linesDueAt_) flushLines();
  if (now >= timeoutAt_) {
    timeoutAt_ = kNever;
    end(Cause::kTimedOut, kTermGraceMs, now);
  }
  if (now >= keptUntil_) {
    keptUntil_ = kNever;
    end(Cause::kDisconnected, kTermGraceMs, now);
  }
  if (now >= killAt_) {
    killAt_ = now + kKillAgainMs;  // until it is empty
    tree_->kill();
  }
}

bool KeptExec::drained() const {
  const bool open = pipes_[kStdout].valid() || pipes_[kStderr].valid();
  if (!open) return true;
  for (int stream = 0; stream < kStreams; ++stream) {
    if (pipes_[stream].valid() &&
        log_.total(static_cast<StreamId>(stream)) < leaderWrote_[stream]) {
      return false;
    }
  }
  return graceOver_;
}

// The kernel counts kills for the whole group. What died need not be the leader: a shell passes its
// child's end on as 137, other programs as some failure, which is told apart from a neighbour's
// trouble only while nobody else runs.
bool KeptExec::killedForMemory(const ExitRecord& record) const {
  if (oom_->read() == oomAtStart_) return false;
  if (record.signal == SIGKILL || record.exitCode == 128 + SIGKILL) return true;
  return alone_ && record.exitCode != 0;
}

uint8_t KeptExec::limitsHit() const {
  uint8_t limits = 0;
  if (oom_->read() != oomAtStart_) limits |= kLimitMemory;
  if (forks_->read() != forksAtStart_) limits |= kLimitPids;
  struct statvfs disk{};
  if (inside_ != nullptr && inside_->diskLimited() &&
      ::fstatvfs(inside_->files().get(), &disk) == 0 &&
      (disk.f_bavail == 0 || disk.f_favail == 0)) {
    limits |= kLimitDisk;
  }
  return limits;
}

ExitRecord KeptExec::makeRecord() const {
  ExitRecord record;
  const int status = leaderEnd_->status;
  if (WIFEXITED(status)) record.exitCode = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) record.signal = WTERMSIG(status);
  if (ending_) {
    record.cause = *ending_;
  } else if (killedForMemory(record)) {
    record.cause = Cause::kOom;
  } else {
    record.cause = record.signal ? Cause::kSignaled : Cause::kExited;
  }
  record.limitsHit = limitsHit();
  record.pid = pid_;
  record.durationMs = leaderEndedAt_ - startedAt_;
  record.usage = leaderEnd_->usage;
  for (int stream = 0; stream < kStreams; ++stream) {
    record.outputBytes[stream] = log_.total(static_cast<StreamId>(stream));
  }
  return record;
}

std::optional<ExitRecord> KeptExec::takeExit() {
  if (exitTaken_ || !leaderEnd_ || !drained()) return std::nullopt;
  exitTaken_ = true;
  flushLines();
  ExitRecord record = makeRecord();
  (void)log_.saveExit(record);
  return record;
}

bool KeptExec::finished() {
  return exitTaken_ && !pipes_[kStdout].valid() && !pipes_[kStderr].valid() && tree_->empty();
}

}  // namespace cay::sandbox
