// The engine that runs jobs on this machine, each behind walls of its own.
//
// It survives its process: open() takes up what an earlier one left, whenever that was killed. What
// is to survive is in files (job_folder.h) before anybody is told of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/job_folder.h"
#include "engine/local_options.h"

namespace cay::engine {

struct JobHouse;
class LocalJob;

// Must outlive what runs on the loop.
class LocalEngine final : public Engine {
 public:
  LocalEngine(boost::asio::io_context& io, LocalOptions options);
  ~LocalEngine() override;

  [[nodiscard]] std::string_view name() const override { return "local"; }
  net::Task<Result<>> open(std::vector<JobSpec> known, Watcher& watcher) override;
  net::Task<Result<>> submit(JobSpec spec) override;
  [[nodiscard]] Result<Status> inspect(std::string_view id) const override;
  [[nodiscard]] std::vector<std::string> list(const Pairs& labels) const override;
  net::Task<Result<>> end(std::string id, Stage stage, std::string why) override;
  net::Task<Result<std::unique_ptr<LogStream>>> logs(std::string id,
                                                     std::optional<uint64_t> tail) override;
  net::Task<Result<net::Stream>> dial(std::string id, uint16_t port) override;
  net::Task<Result<Usage>> usage(std::string id) override;
  void relabel(std::string_view id, Pairs labels) override;
  net::Task<Result<>> forget(std::string id) override;
  [[nodiscard]] const Flavors& flavors() const override { return options_.flavors; }
  net::Task<> shutdown(Jobs jobs) override;

  // What is weaker on this machine than it should be, in sentences for people. After open().
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  using JobPtr = std::shared_ptr<LocalJob>;

  Result<> readJobs();
  net::Task<> recover(std::set<std::string> known);
  net::Task<> recoverJob(JobPtr job);
  net::Task<> removeStrange(JobPtr job);
  // Whether it can ever run here; fills in what its flavor stands for.
  Result<> check(JobSpec& spec) const;
  [[nodiscard]] Result<JobPtr> find(std::string_view id) const;
  [[nodiscard]] std::vector<JobPtr> byAge() const;
  void enter(const JobPtr& job);
  void onNetworksLost();
  void admit();
  void tellPlaces();
  void endLate();
  net::Task<> keepTime();

  boost::asio::io_context& io_;
  LocalOptions options_;
  Watcher* watcher_ = nullptr;
  std::unique_ptr<JobHouse> house_;
  std::map<std::string, JobPtr, std::less<>> jobs_;
  int64_t lastNumber_ = 0;  // of a job, in the order in which they came
  std::vector<JobFolder> broken_;
  bool closing_ = false;
};

}  // namespace cay::engine
