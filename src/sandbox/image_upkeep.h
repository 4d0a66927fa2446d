// Keeps the images of a pool fresh, and removes versions that no sandbox needs any more. On a
// thread of its own, since both may take seconds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "layers/image_store.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::sandbox {

// On the loop's thread only. Must outlive the loop's last task.
class ImageUpkeep {
 public:
  static constexpr int64_t kLookEveryMs = 5'000;
  static constexpr int64_t kRemoveEveryMs = 3'600'000;

  using Versions = std::set<std::string>;

  ImageUpkeep(boost::asio::io_context& io, layers::ImageStore& images) : io_(io), images_(images) {}
  ImageUpkeep(const ImageUpkeep&) = delete;
  ImageUpkeep& operator=(const ImageUpkeep&) = delete;

  // To be called a few times a second. `inUse` gives the versions of all sandboxes, when it is time
  // to remove others; those that are just being made need not be among them.
  void tick(int64_t nowMs, const std::function<Versions()>& inUse);

  // Something that a tick began is not over yet.
  [[nodiscard]] bool working() const { return working_; }

 private:
  net::Task<> work(bool remove, Versions inUse);
  // On the worker's thread.
  Result<> look();
  void removeUnused(Versions inUse);

  boost::asio::io_context& io_;
  layers::ImageStore& images_;
  bool working_ = false;
  int64_t lookAtMs_ = INT64_MIN;
  int64_t removeAtMs_ = INT64_MIN;
  std::string complaint_;  // the last one: the same is not logged again
  // Those that new sandboxes could get since the last removal: a sandbox that is being made has one
  // of them, and no making takes as long as from one removal to the next.
  Versions recent_;
  net::WorkerPool worker_{1};
};

}  // namespace cay::sandbox
