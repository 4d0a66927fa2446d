// A sandbox as the host holds it: its execs, their output, and the keeper that runs them. On the
// loop's thread only. Nothing here knows HTTP.
//
// It holds one descriptor while it has a keeper, and none without. A keeper is started when there
// is something to do for it; until then, and while nothing has run, a sandbox costs next to
// nothing.
#pragma once

#include <cstdint>
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
#include "sandbox/exec_table.h"
#include "sandbox/follower.h"
#include "sandbox/keeper_link.h"
#include "sandbox/keeper_mark.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/known_exec.h"
#include "sandbox/paths.h"
#include "sandbox/wire.h"

namespace cay::sandbox {

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
    SandboxFolder folder;
    LogShape shape;
    Retention retention;
    KeeperLink::Spawner spawnKeeper;
    bool hasSpareLog = false;            // kSpareLog is there, unless records are
    std::function<void()> onFirstWork;   // called once, before a keeper is had for it
    bool keeperIsGiven = false;          // by its maker's handOver(), to us
    std::function<void()> onKeeperLost;  // called after the connection to a keeper has ended
  };

  // One of which nothing is on disk, or what is there is taken up by recover().
  Sandbox(boost::asio::io_context& io, Options options);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Takes up what an earlier host left: records, and a living keeper with its execs.
  void recover();
  // Starts the keeper now, if there is none.
  net::Task<Result<>> prepare() { return haveKeeper(); }
  // Gives the living keeper away, to whoever connects to it next, and tells which process it is.
  // From then on only ended() and destroy() are of use here, also after a restart: the mark is in
  // the folder. Nothing must run yet.
  net::Task<Result<KeeperMark>> handOver();
  // Completes when the keeper that was given away has ended; at once if none was.
  net::Task<> ended();
  // Completes when the keeper, if there is one, has told what it holds. False if `limit` passed
  // first.
  net::Task<bool> settled(Millis limit = net::Event::kForever);

  struct Started {
    ExecPtr exec;
    // Follows the output from the first byte, so that the exec never runs ahead of its client.
    std::unique_ptr<Follower> follower;
  };
  // Starts a command, or finds the one that the same key started before (kUnprocessable if that was
  // another request). Completes when it runs or has failed: kInvalid for a bad request, kExhausted
  // for a shortage or walls that could not be raised, kGone after destroy(); a command that cannot
  // run is an exec with an exit record.
  net::Task<Result<Started>> start(StartRequest request);

  [[nodiscard]] ExecPtr find(std::string_view id) { return table().find(id); }
  // A listed process by id, or by the pid it has or had.
  [[nodiscard]] ExecPtr findProcess(std::string_view idOrPid) {
    return table().findProcess(idOrPid);
  }
  // Oldest first.
  [[nodiscard]] std::vector<ExecPtr> processes() { return table().processes(); }
  [[nodiscard]] size_t running() const { return table_ ? table_->liveCount() : 0; }

  // TERM to the whole tree, KILL after the grace. False if nothing of it was alive.
  net::Task<bool> kill(ExecPtr exec);
  // The same for all that run, without waiting for their ends.
  void endCommands();
  void signal(const Exec& exec, int number);
  // The write end of its standard input; kConflict if that is closed.
  net::Task<Result<Fd>> openStdin(ExecPtr exec);
  void closeStdin(const Exec& exec);

  // The root of its files (O_PATH), and a TCP socket of its network. Errors as of start().
  net::Task<Result<Fd>> root() { return ask(Message::kAskRoot); }
  net::Task<Result<Fd>> socket() { return ask(Message::kAskSocket); }

  [[nodiscard]] bool hasKeeper() const { return link_ != nullptr; }
  // The last keeper did not end in order: where it was not the first process of a pid namespace,
  // commands may have outlived it.
  [[nodiscard]] bool mayHaveOrphans() const { return orphans_; }
  // Has the keeper end, and does not wait: the next work gets a new one. Only while nothing runs.
  void endKeeper();
  // Ends all commands and waits for their ends, then for the keeper's.
  net::Task<> shutdown();
  // Kills everything at once and waits until nothing of it is left. What is under way ends as
  // killed, what comes later is told `why` (kGone).
  net::Task<> destroy(std::string why);
  // Its folder has got another name.
  void moved(std::string prefix) { options_.folder.prefix = std::move(prefix); }

  // "cgroup", "subreaper", or "" while no keeper has said so; and why not cgroups.
  [[nodiscard]] const std::string& treeMechanism() const { return mechanism_; }
  [[nodiscard]] const std::string& whyNoCgroups() const { return whyNoCgroups_; }

 private:
  friend class Follower;

  // A question that the keeper answers by a descriptor; in the order of the questions.
  struct Ask {
    Message answer;
    std::optional<Result<Fd>> result;
    net::Event answered;
  };

  // The records, read from disk at their first use.
  ExecTable& table();
  KeeperLink::Callbacks callbacks();
  void noteWork();
  net::Task<Result<>> haveKeeper();
  Result<ExecPtr> known(const StartRequest& request);
  ExecPtr admit(StartRequest& request);
  Result<> announce(Exec& exec, const ExecSpec& spec);
  net::Task<Result<Fd>> ask(Message question);

  void onPacket(sys::Packet packet);
  void onHello(Reader& in, const Fd& pidfd);
  void onReady();
  void onAnswer(Message kind, Fd fd);
  void onStdin(std::string_view id, bool open, Fd fd);
  void onExec(Message kind, const ExecPtr& exec, Reader& in);
  void onStartFailed(const ExecPtr& exec, StartFailure failure);
  void onKeeperLost();

  Result<LogReader> openLog(const Exec& exec) { return table().openLog(exec); }
  // Tells the keeper how far it may read, if that has moved enough to matter, or in any case.
  enum class Tell { kIfMoved, kAlways };
  void updateWindow(Exec& exec, Tell tell);
  void changeListeners(Exec& exec, int by);
  [[nodiscard]] uint64_t windowBytes() const;

  boost::asio::io_context& io_;
  Options options_;
  std::shared_ptr<KeeperLink> link_;
  bool ready_ = false;    // the keeper has told what it holds
  bool closing_ = false;  // the keeper has been told to end
  bool orphans_ = false;
  bool given_ = false;                // the keeper was given away
  std::string refusal_;               // why the keeper could not raise the walls
  std::optional<KeeperMark> keeper_;  // the last one, until it is known to have ended
  std::optional<Error> gone_;         // what is answered after destroy()
  net::Event keeperChanged_;
  std::string mechanism_;
  std::string whyNoCgroups_;
  bool recovered_ = false;  // there may be records on disk
  std::unique_ptr<ExecTable> table_;
  std::vector<std::shared_ptr<Ask>> asks_;
  std::unordered_map<std::string, std::optional<Fd>> stdinAnswers_;
  net::Event stdinEvent_;
};

}  // namespace cay::sandbox
