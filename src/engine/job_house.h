// What the jobs of the local engine share.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/gpus.h"
#include "engine/id_lease.h"
#include "engine/image_pulls.h"
#include "engine/local_options.h"
#include "engine/networks.h"
#include "engine/queue.h"
#include "engine/volumes.h"
#include "isolation/limit_groups.h"
#include "layers/image_store.h"
#include "net/worker_pool.h"
#include "sandbox/nursery.h"
#include "sandbox/registry.h"

namespace cay::engine {

class LocalJob;

// Of what commands write; those who serve a sandbox must know it.
inline constexpr sandbox::LogShape kJobLogs;

struct JobHouse {
  boost::asio::io_context& io;
  const LocalOptions& options;

  [[nodiscard]] std::string jobs() const { return options.state + "/jobs"; }

  std::optional<IdLease> lease = {};  // where user ids are shared out
  IdUnits units = {};
  std::optional<Gpus> gpus = {};
  std::unique_ptr<sandbox::Nursery> nursery = nullptr;
  std::unique_ptr<layers::ImageStore> images = nullptr;
  isolation::LimitGroups groups = {};
  std::string groupsName = {};
  std::unique_ptr<Networks> networks = nullptr;
  std::unique_ptr<sandbox::Registry> registry = nullptr;
  std::unique_ptr<Volumes> volumes = nullptr;
  std::unique_ptr<ImagePulls> pulls = nullptr;
  std::unique_ptr<Queue> queue = nullptr;

  // A job has something new to tell.
  std::function<void(const LocalJob&)> changed = {};
  // It is no longer being started.
  std::function<void(const LocalJob&)> started = {};
  // It is over, and nothing of it runs any more.
  std::function<void(const LocalJob&)> gone = {};

  // Where the network of a job is; nullptr if there is no such job.
  std::function<const Fd*(std::string_view id)> networkOf = {};

  net::WorkerPool workers{2};
};

}  // namespace cay::engine
