// The keeper's inside: one epoll loop over the host's connection, signals, and the pipes and
// process trees of its execs. keeper.cc has the loop and the execs, keeper_host.cc what is said to
// and by the host.
#pragma once

#include <sys/epoll.h>
#include <sys/resource.h>

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandbox/group_counter.h"
#include "sandbox/host_channel.h"
#include "sandbox/keeper.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/kept_exec.h"
#include "sandbox/wire.h"
#include "sys/packet.h"

namespace cay::sandbox {

// What an epoll event is about.
enum class Source : uint8_t { kListener, kHost, kSignals, kStdout, kStderr, kStdin, kTree };

class Keeper {
 public:
  Keeper(KeeperOptions options, std::unique_ptr<ProcessTrees> trees)
      : options_(std::move(options)),
        trees_(std::move(trees)),
        host_(std::move(options_.listener)),
        oom_(options_.inside ? GroupCounter::oomKills(options_.inside->takeOomKills())
                             : GroupCounter::oomKillsOfOwnGroup()),
        forks_(options_.inside ? GroupCounter::refusedForks(options_.inside->takePidsEvents())
                               : GroupCounter()),
        null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    ::getrlimit(RLIMIT_NOFILE, &commandFiles_);
    commandFiles_.rlim_cur = std::min<rlim_t>(options_.commandOpenFiles, commandFiles_.rlim_max);
  }

  int run();

 private:
  // An exec and what of it is in the epoll set.
  struct Entry {
    uint32_t key = 0;
    std::unique_ptr<KeptExec> exec;
    bool watching[3] = {false, false, false};  // stdout, stderr, stdin
    bool treeWatched = false;
    bool observed = false;   // the host follows the output
    int64_t quietUntil = 0;  // nothing is told before, unless it ends; 0: it has been told of
    Offsets told;            // totals of the last kProgress
    int64_t deadline = KeptExec::kNever;  // as it stands in deadlines_
    bool touched = false;                 // is in touched_
  };

  // Descriptors.
  void watch(int fd, uint32_t events, Source source, uint32_t key = 0);
  void onEvent(const epoll_event& event);
  void onSignals();
  void onHost(uint32_t events);
  void onHostPacket(sys::Packet packet);
  void watchHost();
  void loseHost();

  // Messages.
  void tell(const Writer& message, int fd = -1);
  void greet();
  void start(Reader& in, Fd attached);
  void handleMessage(Message kind, Reader& in);
  void tellRoot();
  void tellSocket();
  void tellStarted(Entry& entry);
  void tellProgress(Entry& entry);
  void tellExit(Entry& entry, const ExitRecord& exit, bool gone);
  void tellGone(const Entry& entry);

  // Execs.
  Entry* find(std::string_view id);
  void touch(Entry& entry);
  void settleTouched();
  void settle(Entry& entry, int64_t now);
  void setWatch(Entry& entry, int slot, bool wanted, int fd, uint32_t events, Source source);
  void leaderEnded(Entry& entry, const LeaderEnd& end, int64_t now);
  // Ends all execs, for that reason, and then itself.
  void shutdown(Cause cause);
  // When it goes, if nothing runs and nobody comes until then.
  [[nodiscard]] int64_t leavesAt() const;
  [[nodiscard]] int waitMs(int64_t now) const;

  KeeperOptions options_;
  std::unique_ptr<ProcessTrees> trees_;
  HostChannel host_;
  GroupCounter oom_;
  GroupCounter forks_;
  Fd null_;
  Fd epoll_;
  Fd signals_;
  rlimit commandFiles_{};

  std::unordered_map<uint32_t, Entry> execs_;
  std::unordered_map<std::string, uint32_t> byId_;
  std::unordered_map<pid_t, uint32_t> byPid_;
  std::set<std::pair<int64_t, uint32_t>> deadlines_;
  std::vector<uint32_t> touched_;
  uint32_t nextKey_ = 1;
  bool shuttingDown_ = false;
  uint32_t watchedFor_ = 0;  // events of the host's connection in the epoll set
  int64_t lonelySince_ = 0;
  int64_t lifeEndsAt_ = KeptExec::kNever;
  int64_t patienceEndsAt_ = KeptExec::kNever;  // with those who do not let it end in order
};

}  // namespace cay::sandbox
