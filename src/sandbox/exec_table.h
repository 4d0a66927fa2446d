// The execs of one sandbox that the host has records of: those that run, and the ended ones whose
// output is still kept. On the loop's thread only.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "net/event.h"
#include "sandbox/known_exec.h"
#include "sandbox/output_log.h"
#include "sandbox/paths.h"

namespace cay::sandbox {

// How much of ended execs is kept.
struct Retention {
  uint64_t logBytes = 512ULL << 20;  // of output in all
  size_t execs = 512;                // records
  size_t processes = 256;
};

class ExecTable {
 public:
  // `folder` must outlive the table.
  ExecTable(boost::asio::io_context& io, const SandboxFolder& folder, LogShape shape,
            Retention retention);
  ExecTable(const ExecTable&) = delete;
  ExecTable& operator=(const ExecTable&) = delete;

  // Reads what an earlier host left. All execs without an exit record count as live.
  void load();

  [[nodiscard]] ExecPtr find(std::string_view id) const;
  [[nodiscard]] ExecPtr findByKey(const std::string& key) const;
  // A listed process by id, or by the pid it has or had.
  [[nodiscard]] ExecPtr findProcess(std::string_view idOrPid) const;
  // Oldest first.
  [[nodiscard]] std::vector<ExecPtr> processes() const;
  [[nodiscard]] std::vector<ExecPtr> live() const;
  [[nodiscard]] size_t liveCount() const { return liveCount_; }

  // An empty file among the logs, made beforehand: the next exec takes it.
  void offer(std::string file) { offered_ = std::move(file); }
  // A new one. Its output goes to a file of its own, or to that of an ended one that nobody needs
  // any more: true then.
  bool add(const ExecPtr& exec);
  // Nothing more can come of it: it joins the ended ones.
  void end(const ExecPtr& exec);
  // Its command had ended, but something that it left behind has not.
  void revive(const ExecPtr& exec);
  // Nobody saw its end: it gets an exit record that says so.
  void lose(const ExecPtr& exec, Cause cause);
  // Forgets it, with its file.
  void discard(const ExecPtr& exec);

  [[nodiscard]] Result<LogReader> openLog(const Exec& exec) const;
  [[nodiscard]] const LogShape& shape() const { return shape_; }

 private:
  ExecPtr loadRecord(const std::string& file) const;
  void setLive(Exec& exec, bool live);
  void forget(const ExecPtr& exec);
  void unlinkLog(const std::string& file) const;
  ExecPtr takeOldest(Kind kind);
  std::string takeRecyclable(Kind kind);
  [[nodiscard]] size_t keptRecords(Kind kind) const;
  [[nodiscard]] uint64_t diskBytes(const Exec& exec) const;
  void enforceRetention();

  const SandboxFolder& folder_;
  const LogShape shape_;
  std::string offered_;
  const Retention retention_;
  std::unordered_map<std::string, ExecPtr> execs_;
  std::unordered_map<std::string, ExecPtr> byKey_;
  std::deque<ExecPtr> finished_[2];  // by Kind, oldest first
  uint64_t finishedBytes_ = 0;
  size_t liveCount_ = 0;
  net::Timer retentionTimer_;
  bool retentionDue_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace cay::sandbox
