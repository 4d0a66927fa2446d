// One cay-host that serves a job from outside its walls.
//
// It listens on a socket in the job's folder that we have made and keep open, so that no connection
// is lost while it is started again: at once when it has died, then later and later. It outlives
// us, and is found again by its mark.
//
//   host.sock   where it listens
//   host.mark   which process it is
//   host.log    what it says
//   host.end    why it ended in order
//
// On the loop's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "host/startup.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"
#include "sandbox/keeper_mark.h"

namespace cay::engine {

class FrontEnd : public std::enable_shared_from_this<FrontEnd> {
 public:
  struct Plan {
    std::string program;          // cay-host
    std::string folder;           // of the job
    host::Startup startup;        // its end note is filled in
    const Fd* network = nullptr;  // of the job, if it has one
    bool inNetwork = false;       // is in that network; else in ours
    std::vector<Fd> groups = {};  // control groups to be in
  };
  // How it ended for good; nullopt, with the reason, if it cannot be had to serve.
  using OnEnd = std::function<void(std::optional<host::End>, std::string why)>;

  static std::shared_ptr<FrontEnd> make(boost::asio::io_context& io, Plan plan, OnEnd onEnd);
  FrontEnd(const FrontEnd&) = delete;
  FrontEnd& operator=(const FrontEnd&) = delete;

  // For a job that is new.
  Result<> start();
  // Takes the one up that lives, or starts one.
  Result<> adopt();
  // Completes when it serves, or will not; tells which.
  net::Task<bool> serving(Millis limit);
  // Completes when it has connected: also while it is being started again.
  net::Task<Result<net::Stream>> dial();
  // Kills it for good.
  net::Task<> stop();
  // start(), adopt() and onEnd are over: nobody is interested any more.
  void abandon();

  // Kills what an earlier process left in the folder of a job.
  static net::Task<> killLeft(std::string folder);
  // The cay-hosts of the jobs below this folder that no mark tells of, since whoever started them
  // was killed right then. Reads all of /proc.
  static std::vector<sandbox::KeeperMark> unmarked(const std::string& jobs);

 private:
  FrontEnd(boost::asio::io_context& io, Plan plan, OnEnd onEnd);
  Result<> listen();
  Result<> launch();
  static net::Task<> awaitChild(std::shared_ptr<FrontEnd> self, Fd process);
  static net::Task<> awaitOther(std::shared_ptr<FrontEnd> self, sandbox::KeeperMark mark);
  static net::Task<> awaitReady(std::shared_ptr<FrontEnd> self, Fd pipe, uint64_t launch);
  static net::Task<> launchAgain(std::shared_ptr<FrontEnd> self);
  void onDeath(int status);
  void finish(std::optional<host::End> end, std::string why);
  [[nodiscard]] std::string file(const char* name) const { return plan_.folder + "/" + name; }
  [[nodiscard]] std::string lastWords() const;

  boost::asio::io_context& io_;
  Plan plan_;
  OnEnd onEnd_;
  Fd listener_;
  std::optional<sandbox::KeeperMark> mark_;
  bool serving_ = false;
  bool over_ = false;
  uint64_t launches_ = 0;
  uint32_t failures_ = 0;  // in a row
  net::Event changed_;
};

}  // namespace cay::engine
