// A sandbox as the host holds it: its execs, their output, and the keeper that runs them. On the
// loop's thread only. Nothing here knows HTTP.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "net/event.h"
#include "net/task.h"
#include "sandbox/exec.h"
#include "sandbox/keeper_link.h"
#include "sandbox/launch.h"
#include "sandbox/output_log.h"
#include "sandbox/paths.h"

namespace cay::sandbox {

class Follower;

// What the host knows of one exec.
struct Exec {
  std::string id;
  std::string file;  // its output log, below the state folder's execs
  Kind kind = Kind::kExec;
  int32_t pid = 0;  // 0 until it runs
  int64_t startedAtMs = 0;
  std::string cmd;  // JSON text, of processes alone
  std::string tag;
  std::string key;          // Idempotency-Key, if any
  std::string fingerprint;  // of the request that carried it

  bool announced = false;  // the keeper has been told of it
  bool recovered = false;  // found in the state folder, not yet confirmed by a keeper
  bool live = true;        // the keeper still has it
  std::optional<StartFailure> failure;
  std::optional<ExitRecord> exit;
  Offsets totals;
  Offsets lostFrom{{kNoLimit, kNoLimit}};
  uint64_t progressCount = 0;  // of messages that told the totals
  net::Event changed;

  std::vector<Follower*> followers;
  Offsets limitSent{{kNoLimit, kNoLimit}};
  int listeners = 0;  // followers that count as somebody listening
};
using ExecPtr = std::shared_ptr<Exec>;

struct StartRequest {
  ExecSpec spec;    // without id and meta
  std::string cmd;  // JSON text, for the list of processes
  std::string tag;
  std::string key;
  std::string fingerprint;
};

class Sandbox {
 public:
  struct Options {
    StateFolder state;
    LogShape shape;
    uint64_t totalLogBytes = 512ULL << 20;
    size_t finishedExecs = 512;      // records of ended execs that are kept
    size_t finishedProcesses = 256;  // the same of processes
    KeeperLink::Spawner spawnKeeper;
  };

  // Takes up what an earlier host left: records, and a living keeper with its execs. Completes when
  // the keeper has told what it holds.
  static net::Task<Result<std::unique_ptr<Sandbox>>> open(boost::asio::io_context& io,
                                                          Options options);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  struct Started {
    ExecPtr exec;
    // Follows the output from the first byte, so that the exec never runs ahead of its client.
    std::unique_ptr<Follower> follower;
  };
  // Starts a command, or finds the one that the same key started before (kUnprocessable if that was
  // another request). Completes when it runs or has failed: kInvalid for a bad request, kExhausted
  // for a shortage; a command that cannot run is an exec with an exit record.
  net::Task<Result<Started>> start(StartRequest request);

  [[nodiscard]] ExecPtr find(std::string_view id) const;
  // A listed process by id, or by the pid it has or had.
  [[nodiscard]] ExecPtr findProcess(std::string_view idOrPid) const;
  // Oldest first.
  [[nodiscard]] std::vector<ExecPtr> processes() const;
  [[nodiscard]] size_t running() const;

  // TERM to the whole tree, KILL after the grace. False if nothing of it was alive.
  net::Task<bool> kill(ExecPtr exec);
  void signal(const Exec& exec, int number);
  // The write end of its standard input; kConflict if that is closed.
  net::Task<Result<Fd>> openStdin(ExecPtr exec);
  void closeStdin(const Exec& exec);

  // Ends all commands and waits for their ends, then for the keeper's.
  net::Task<> shutdown();

  // "cgroup", "subreaper", or "" while no keeper has said so; and why not cgroups.
  [[nodiscard]] const std::string& treeMechanism() const { return mechanism_; }
  [[nodiscard]] const std::string& whyNoCgroups() const { return whyNoCgroups_; }

 private:
  friend class Follower;

  Sandbox(boost::asio::io_context& io, Options options);
  void loadRecords();
  ExecPtr loadRecord(const std::string& file);
  KeeperLink::Callbacks callbacks();
  Result<> ensureKeeper();
  void onPacket(const sys::Packet& packet);
  void onKeeperLost();
  void markLost(const ExecPtr& exec);
  void settleGone(const ExecPtr& exec);
  void forget(const ExecPtr& exec);
  void discard(const ExecPtr& exec);  // with its file
  ExecPtr takeOldest(Kind kind);
  std::string takeRecyclable(Kind kind);
  [[nodiscard]] size_t keptRecords(Kind kind) const;
  void enforceRetention();
  Result<LogReader> openLog(const Exec& exec) const;
  // Tells the keeper how far it may read, if that has moved enough to matter, or in any case.
  enum class Tell { kIfMoved, kAlways };
  void updateWindow(Exec& exec, Tell tell);
  void changeListeners(Exec& exec, int by);
  [[nodiscard]] uint64_t windowBytes() const;

  boost::asio::io_context& io_;
  Options options_;
  std::shared_ptr<KeeperLink> link_;
  bool ready_ = false;  // the keeper has told what it holds
  net::Event keeperChanged_;
  std::string mechanism_;
  std::string whyNoCgroups_;
  std::unordered_map<std::string, ExecPtr> execs_;
  std::unordered_map<std::string, ExecPtr> byKey_;
  std::deque<ExecPtr> finished_[2];  // by Kind, oldest first
  uint64_t finishedBytes_ = 0;
  net::Timer retentionTimer_;
  bool retentionDue_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::unordered_map<std::string, std::optional<Fd>> stdinAnswers_;
  net::Event stdinEvent_;
};

// Reads one exec's output in order, never beyond what the keeper has told, and holds the keeper
// back so that nothing is overwritten unread. Destroy it as soon as reading is over.
class Follower {
 public:
  // `listening`: counts as somebody who wants the exec to go on (OnDisconnect).
  Follower(Sandbox& sandbox, ExecPtr exec, Offsets from, bool listening);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // For an exec that was there before: completes when it is known how far its output reaches now.
  // Call it before the first next().
  net::Task<> sync();

  struct Piece {
    StreamId stream;
    uint64_t from;
    std::string_view data;  // empty: a gap up to `to`; valid until the next call
    uint64_t to;
  };
  // The next piece that is there now; nullopt if none is.
  Result<std::optional<Piece>> next();
  // All that belongs before the exit event has been read.
  [[nodiscard]] bool atExit() const;
  // All that was there at sync() has been read.
  [[nodiscard]] bool pastSync() const;
  [[nodiscard]] const ExecPtr& exec() const { return exec_; }

 private:
  friend class Sandbox;

  [[nodiscard]] uint64_t target(StreamId stream) const;

  Sandbox& sandbox_;
  ExecPtr exec_;
  Offsets at_;
  Offsets atSync_;  // totals when reading began
  uint64_t progressBefore_;
  bool listening_;
  std::optional<LogReader> log_;
  std::string buffer_;
};

}  // namespace cay::sandbox
