// The jobs that clients ask about all the time: those that are not over, and those that ended
// lately. Here is what is true; the store follows at once, and at its own pace when the disk is
// full.
//
// On the loop's thread. Must outlive what runs on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/job.h"
#include "hub/job_fields.h"
#include "hub/rows.h"
#include "hub/store.h"
#include "net/event.h"
#include "net/task.h"

namespace cay::hub {

struct Job {
  JobRow row;
  bool serving = false;  // a sandbox's server answers
  net::Event changed;    // after the row has
};
using JobPtr = std::shared_ptr<Job>;

class JobTable final : public engine::Watcher {
 public:
  JobTable(boost::asio::io_context& io, Store& store) : io_(io), store_(store) {}

  // Those that an earlier process left: what the store has of them, before anything else is asked.
  void restore(std::vector<JobRow> live, int64_t lastSeq);

  // Gives it its number, and completes when it is stored. On failure there is no job.
  net::Task<Result<JobPtr>> add(JobRow row);
  // Of an engine. A stage that cannot follow, or news of a job that is over, change nothing.
  void changed(const std::string& id, const engine::Status& status) override;
  // What clients change; complete when it is stored.
  net::Task<Result<>> relabel(JobPtr job, engine::Pairs labels);
  net::Task<Result<>> expose(JobPtr job, Expose ports);
  // A client has reached its server through the edge.
  void reached(Job& job);

  // nullptr if it is not over and unknown, or was over too long ago to be here.
  [[nodiscard]] JobPtr find(std::string_view id) const;
  // Wherever it is. kNotFound if there is none.
  net::Task<Result<JobPtr>> get(std::string id);
  // Newest first, those of the store included.
  net::Task<Result<std::vector<JobRow>>> list(JobFilter filter);
  // The jobs that are not over, oldest first.
  [[nodiscard]] std::vector<JobPtr> live() const;

  // Removes what ended long ago or is too much, here and in the store; gives the ids.
  net::Task<Result<std::vector<std::string>>> forgetEnded(int64_t beforeMs, uint64_t keep);
  // Completes when the store has everything; false if `limit` passed first.
  net::Task<bool> settled(Millis limit);

 private:
  // How many that are over, and stored, are kept here.
  static constexpr size_t kRecent = 256;
  static constexpr Millis kRetry{1000};

  struct Entry {
    JobPtr job;
    bool dirty = false;    // the store has an older one
    bool writing = false;  // and is being told
  };

  void touch(const std::string& id);
  net::Task<> keepStored(std::string id);
  void keepAsRecent(const std::string& id);

  boost::asio::io_context& io_;
  Store& store_;
  std::map<std::string, Entry, std::less<>> jobs_;
  std::deque<std::string> recent_;
  size_t unsettled_ = 0;  // entries that are being written
  net::Event wrote_;
  int64_t lastSeq_ = 0;
};

}  // namespace cay::hub
