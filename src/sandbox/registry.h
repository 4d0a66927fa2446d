// The sandboxes of a pool: making, finding and ending them. On the loop's thread only; what blocks
// runs on threads of its own. Must outlive the loop's last task.
//
// Whether a sandbox is there is decided in one place and without waiting: retire() takes it out of
// the registry at once, whatever then remains to be done. So a request that has found a sandbox and
// counts as its user (Activity::InUse) either is what keeps it from being evicted, or has come too
// late to find it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "isolation/plan.h"
#include "layers/image_store.h"
#include "net/event.h"
#include "net/task.h"
#include "net/worker_pool.h"
#include "sandbox/gone_list.h"
#include "sandbox/image_upkeep.h"
#include "sandbox/pool_folder.h"
#include "sandbox/pooled.h"
#include "sandbox/ready_sandboxes.h"
#include "sandbox/slots.h"

namespace cay::sandbox {

class Registry {
 public:
  struct Options {
    isolation::Mode mode = isolation::Mode::kFull;
    LogShape shape;
    Retention retention;
    layers::ImageStore* images = nullptr;
    // Starts a keeper behind the walls of the plan.
    std::function<Result<>(const isolation::Plan&, Fd listener)> spawnKeeper;
    // Nothing with the user ids and groups of this slot is left. False if what it held cannot be
    // had back yet: it is asked again later, unless the slot is needed before. Called on another
    // thread.
    std::function<bool(uint32_t slot)> releaseSlot;
  };

  // Takes up what an earlier host left. Completes when the living keepers have told what they hold.
  // The folder must fit the mode.
  static net::Task<Result<std::unique_ptr<Registry>>> open(boost::asio::io_context& io,
                                                           PoolFolder folder, Options options);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  struct CreateRequest {
    uint32_t count = 1;
    PoolSpec spec;
    std::string key;  // Idempotency-Key, or empty
    std::string fingerprint;
    // For a single one: what it is to be called (isGivenId). kConflict if there is one of that
    // name. Its death is not remembered, and its name may be used again.
    std::string id;
  };
  struct Created {
    std::vector<PooledPtr> sandboxes;
    uint32_t rejected = 0;  // for want of capacity, and for nothing else
  };
  // How many there may be; without it, any number.
  void setCapacity(size_t capacity) { capacity_ = capacity; }
  // How many may stand ready before they are asked for; none until this is called.
  void setMostReady(size_t most) { ready_.setMost(most); }
  [[nodiscard]] size_t readyCount() const { return ready_.waiting().size(); }
  // All that there is capacity for, or an error and none.
  net::Task<Result<Created>> create(CreateRequest request);

  [[nodiscard]] PooledPtr find(std::string_view id) const;
  [[nodiscard]] std::optional<GoneList::Entry> findGone(std::string_view id) const;
  // Oldest first.
  [[nodiscard]] std::vector<PooledPtr> list() const;
  [[nodiscard]] size_t size() const { return members_.size() + beingMade_; }

  // Ends it: it is gone at once, and everything in it is killed. Its files and user ids are freed
  // later. Does nothing if it is gone already.
  void retire(const PooledPtr& pooled, Death death);
  // Completes when nothing of a retired one runs any more.
  static net::Task<> ended(PooledPtr pooled);

  // To be called a few times a second: ends what is idle or out of time, and keepers without work,
  // and looks after the images.
  void tick(int64_t nowMs);

  // Ends all commands and keepers, and keeps the sandboxes for the next start.
  net::Task<> shutdown();
  // Completes when nothing is left of those that were retired, or after `limit` (false).
  net::Task<bool> cleared(Millis limit);

  [[nodiscard]] const PoolFolder& folder() const { return folder_; }
  [[nodiscard]] isolation::Mode mode() const { return options_.mode; }

 private:
  friend struct Pooled;

  // The sandboxes that one request with an Idempotency-Key made.
  struct Batch {
    std::string fingerprint;
    bool beingMade = false;
    std::vector<PooledPtr> sandboxes;  // those that are still there
    uint32_t rejected = 0;
  };

  Registry(boost::asio::io_context& io, PoolFolder folder, GoneList gone, Options options);
  Result<> recover();
  Result<> recoverTrash(const std::vector<PoolFolder::Trashed>& trash);
  [[nodiscard]] Result<> checkId(const CreateRequest& request) const;
  net::Task<Result<Created>> make(const CreateRequest& request, uint32_t count);
  using SharedSpec = std::shared_ptr<const PoolSpec>;
  [[nodiscard]] PoolRecord recordFor(const CreateRequest& request, SharedSpec spec, std::string id,
                                     uint32_t slot) const;
  Result<std::vector<PoolRecord>> draft(const CreateRequest& request, uint32_t count);
  // One that stands ready becomes what is asked for; nullptr if there is none.
  net::Task<PooledPtr> adopt(const CreateRequest& request);
  net::Task<PooledPtr> makeReady(ReadySandboxes::Kind kind);
  PooledPtr enter(PoolRecord record, std::shared_ptr<const layers::Image> image);
  // The same image for all that have it.
  std::shared_ptr<const layers::Image> shared(const layers::Image& image);
  [[nodiscard]] Sandbox::Options sandboxOptions(SandboxFolder folder) const;
  Sandbox::Options sandboxOptions(const Pooled& pooled);
  [[nodiscard]] Result<> spawnKeeper(const Pooled& pooled, Fd listener) const;
  void join(const PooledPtr& pooled);
  void leave(const PooledPtr& pooled);
  void takeAway(const PooledPtr& pooled, Death death, std::optional<layers::Shape> reusable);
  net::Task<> bury(PooledPtr pooled, std::optional<PoolFolder::Trashed> what);
  net::Task<> clear(std::shared_ptr<Sandbox> trashed, PoolFolder::Trashed what);
  // The user whose processes have no pid namespace to die with.
  [[nodiscard]] std::optional<uint32_t> uidToEnd(uint32_t slot) const;
  void endOrphans(uint32_t slot) const;
  // Blocks until they are gone.
  void awaitNobody(uint32_t slot) const;
  net::Task<> removeFiles(PoolFolder::Trashed what);
  net::Task<> releaseSlot(uint32_t slot);
  net::Task<> releaseHeldBack();
  std::optional<uint32_t> takeSlot();
  net::Task<> refill();
  [[nodiscard]] ImageUpkeep::Versions imageVersions() const;

  boost::asio::io_context& io_;
  PoolFolder folder_;
  GoneList gone_;
  Options options_;
  size_t capacity_ = SIZE_MAX;
  Slots slots_;
  std::deque<uint32_t> heldBack_;  // nobody's; what they held cannot be had back yet
  int64_t nextReleaseMs_ = 0;
  std::unordered_map<std::string, PooledPtr> members_;
  size_t beingMade_ = 0;
  std::set<std::string> idsBeingMade_;  // of those whose id was given
  size_t ending_ = 0;                   // taken away, and not dead yet
  size_t beingRemoved_ = 0;             // taken away, and there are still files
  std::unordered_map<std::string, Batch> batches_;
  net::Event batchMade_;
  std::vector<std::weak_ptr<const layers::Image>> images_;
  ReadySandboxes ready_;
  // Apart from each other and from the file routes: a tree of a million files that is being removed
  // keeps nobody waiting.
  net::WorkerPool makers_{1};
  net::WorkerPool removers_{3};
  bool refilling_ = false;
  ImageUpkeep upkeep_;
};

}  // namespace cay::sandbox
