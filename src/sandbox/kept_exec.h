// One exec inside the keeper: its pipes, its log, its process tree and its deadlines. It decides
// nothing about sockets or epoll; the keeper calls it when something has happened and asks what it
// wants next.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/exec.h"
#include "sandbox/group_counter.h"
#include "sandbox/line_log.h"
#include "sandbox/output_log.h"
#include "sandbox/process_tree.h"

namespace cay::sandbox {

class KeptExec {
 public:
  struct Surroundings {
    int logFolder;
    LogShape shape;
    ProcessTrees& trees;
    const GroupCounter& oom;
    const GroupCounter& forks;
    const isolation::Inside* inside;  // the walls; null: none
    bool alone;                       // nothing else runs in the sandbox
    int null;                         // /dev/null, for commands without input
    rlimit openFiles;
  };

  // What is fed to a command with Stdin::kData: a part of a file. Never read into our memory, since
  // the peak memory of commands is counted from ours.
  struct StdinData {
    Fd file;
    uint64_t from = 0;
    uint64_t to = 0;
  };

  // Starts the command. On StartFault::kCommand the log holds the reason and the exit record; on
  // the other faults no log is left.
  static std::expected<std::unique_ptr<KeptExec>, StartFailure> start(const Surroundings& around,
                                                                      const ExecSpec& spec,
                                                                      StdinData stdinData);

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] ProcessTree& tree() { return *tree_; }
  [[nodiscard]] const Offsets& totals() const { return log_.totals(); }
  [[nodiscard]] const Offsets& lostFrom() const { return log_.lostFrom(); }
  [[nodiscard]] sys::IoCounter::Counts ioCounts() const { return io_.read(); }
  [[nodiscard]] bool leaderRuns() const { return !leaderEnd_.has_value(); }

  // Output. A pipe is to be watched while wantsRead() says so.
  [[nodiscard]] int pipe(StreamId stream) const { return pipes_[stream].get(); }
  [[nodiscard]] bool wantsRead(StreamId stream) const;
  // Reads once, so that a command that never stops writing does not keep the others waiting.
  void readPipe(StreamId stream, std::span<char> buffer);
  void setLimits(const Offsets& limits) { limits_ = limits; }
  // Another exec has begun in the same sandbox.
  void setAccompanied() { alone_ = false; }
  void flushLog() { (void)log_.saveTotals(); }

  // Input. The pipe is to be watched for writing while there is data left to feed.
  [[nodiscard]] int stdinPipe() const { return stdin_.get(); }
  [[nodiscard]] bool wantsWrite() const { return stdin_.valid() && stdinFile_.valid(); }
  void feedStdin();
  void closeStdin() { stdin_.reset(); }

  // Ending. The first cause counts; the kill is never put off by a later call.
  void end(Cause cause, int64_t graceMs, int64_t now);
  void signalGroup(int number);
  void setAttended(bool attended, int64_t now);
  void onLeaderEnd(const LeaderEnd& end, int64_t now);
  // The tree is lost without the leader's end having been seen (its minder was killed).
  void onMinderLost();
  // The moment at which onDeadline wants to be called, or kNever.
  static constexpr int64_t kNever = INT64_MAX;
  [[nodiscard]] int64_t nextDeadline() const;
  void onDeadline(int64_t now);

  // The exit record as soon as it may be announced, once.
  std::optional<ExitRecord> takeExit();
  // The exit is announced, nothing is alive and no pipe is open: the object has done its work.
  [[nodiscard]] bool finished();

 private:
  KeptExec(const ExecSpec& spec, LogWriter log, std::unique_ptr<ProcessTree> tree);

  void askToEnd();
  void keep(StreamId stream, std::string_view bytes);
  void flushLines();
  [[nodiscard]] bool drained() const;
  [[nodiscard]] uint8_t limitsHit() const;
  [[nodiscard]] bool killedForMemory(const ExitRecord& record) const;
  [[nodiscard]] ExitRecord makeRecord() const;

  std::string id_;
  OnDisconnect onDisconnect_;
  LogWriter log_;
  std::optional<LineLogWriter> lines_;
  int64_t linesDueAt_ = kNever;  // when an unfinished line is written as it is
  std::unique_ptr<ProcessTree> tree_;
  const GroupCounter* oom_ = nullptr;
  uint64_t oomAtStart_ = 0;
  const GroupCounter* forks_ = nullptr;
  uint64_t forksAtStart_ = 0;
  const isolation::Inside* inside_ = nullptr;
  bool alone_ = true;  // nothing else ran in the sandbox during its life
  pid_t pid_ = -1;
  Fd pidfd_;
  sys::IoCounter io_;
  Fd pipes_[kStreams];
  Offsets limits_{{kNoLimit, kNoLimit}};
  Fd stdin_;
  Fd stdinFile_;
  uint64_t stdinAt_ = 0;
  uint64_t stdinEnd_ = 0;

  int64_t startedAt_ = 0;
  int64_t timeoutAt_ = kNever;
  int64_t keptUntil_ = kNever;
  int64_t killAt_ = kNever;
  std::optional<Cause> ending_;
  std::optional<LeaderEnd> leaderEnd_;
  int64_t leaderEndedAt_ = 0;
  uint64_t leaderWrote_[kStreams] = {0, 0};  // what was in the pipes when it ended is its own
  bool graceOver_ = false;
  bool exitTaken_ = false;
};

}  // namespace cay::sandbox
