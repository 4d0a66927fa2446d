// What the routes of the API share. Whoever serves them makes it, and keeps it and what it refers
// to for as long as anything runs on the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "engine/engine.h"
#include "hub/callers.h"
#include "hub/job_info.h"
#include "hub/job_table.h"
#include "hub/store.h"
#include "net/worker_pool.h"

namespace cay::hub {

struct HubState {
  boost::asio::io_context& io;
  net::WorkerPool& workers;
  Store& store;
  Callers& callers;
  JobTable& jobs;
  engine::Engine& engine;
  EdgeAddress edge;
  std::string serverFile;    // cay-host, for jobs that download a server
  std::string bucketFolder;  // where files of buckets are, for those who would upload some
  // Somebody has asked how a job is; may be empty.
  std::function<void(const JobPtr& job, const Caller& caller)> onInspected;
};

}  // namespace cay::hub
