// A registry with keepers without walls, so that it can be tried by anybody.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "sandbox/keeper_process.h"
#include "sandbox/registry.h"
#include "sys/file.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {

namespace fs = std::filesystem;

using testing::eventually;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The homes of sandboxes must be reachable for their users.
    fs::permissions(dir_.path(), fs::perms{0711});
    open();
  }
  void TearDown() override {
    if (!registry_) return;
    for (const PooledPtr& pooled : list()) loop_->await(pooled->sandbox.shutdown());
    close();
  }

  void open(size_t capacity = 10) {
    loop_ = std::make_unique<testing::LoopThread>();
    auto folder = PoolFolder::open(state());
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(folder->fitFor(mode_, ids_));
    images_ = std::make_unique<layers::ImageStore>(
        layers::ImageStore::Options{.folder = folder->imagesPath(),
                                    .roots = {},
                                    .mode = mode_,
                                    .machine = dir_.path() / "machine"});
    Registry::Options options;
    options.mode = mode_;
    options.images = images_.get();
    options.spawnKeeper = [this](const isolation::Plan& plan, Fd listener) {
      plans_.push_back(plan);
      const std::string execs = state() / "sandboxes" / plan.id / "execs";
      const Fd logs = sys::openAt(AT_FDCWD, execs.c_str(), O_RDONLY | O_DIRECTORY).value();
      return keeperSpawner({.shape = {}, .cgroupName = "", .noCgroups = "test"},
                           logs.get())(std::move(listener));
    };
    options.releaseSlot = [this](uint32_t) { return givesBack_.load(); };
    auto registry =
        loop_->await(Registry::open(loop_->io(), std::move(*folder), std::move(options)));
    ASSERT_TRUE(registry) << registry.error().message;
    registry_ = std::move(*registry);
    registry_->setCapacity(capacity);
  }

  // As if the host had been killed: keepers go on.
  void close() {
    loop_->stop();
    registry_.reset();
    oldLoops_.push_back(std::move(loop_));
  }
  void restart(size_t capacity = 10) {
    close();
    open(capacity);
  }

  // Opens again with so many slots.
  void openWithSlots(uint32_t slots) {
    close();
    ids_ = UserIds::choose(mode_, "0");
    ids_->slots = slots;
    open();
  }

  // Opens again with a small machine of our own, in a folder, of which the image `host` is made.
  void openWithMachine() {
    close();
    mode_ = isolation::Mode::kUnprivileged;
    fs::create_directories(dir_.path() / "machine/etc");
    fs::create_directories(dir_.path() / "machine/usr/bin");
    (void)dir_.write("machine/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    open();
  }

  static Registry::CreateRequest request(uint32_t count = 1) {
    Registry::CreateRequest request;
    request.count = count;
    return request;
  }
  Result<Registry::Created> tryCreate(Registry::CreateRequest request) {
    return loop_->await(registry_->create(std::move(request)));
  }
  Registry::Created create(Registry::CreateRequest request) {
    auto created = tryCreate(std::move(request));
    EXPECT_TRUE(created) << created.error().message;
    return std::move(*created);
  }
  PooledPtr createOne(PoolSpec spec = {}) {
    auto wanted = request();
    wanted.spec = std::move(spec);
    return create(std::move(wanted)).sandboxes.at(0);
  }
  // Without waiting; the ids of what it makes.
  std::future<std::vector<std::string>> askAtOnce(Registry::CreateRequest request) {
    return boost::asio::co_spawn(loop_->io(), idsOf(*registry_, std::move(request)),
                                 boost::asio::use_future);
  }
  static net::Task<std::vector<std::string>> idsOf(Registry& registry,
                                                   Registry::CreateRequest request) {
    const auto created = co_await registry.create(std::move(request));
    std::vector<std::string> ids;
    for (const PooledPtr& pooled : created.value().sandboxes) ids.push_back(pooled->record.id);
    co_return ids;
  }
  std::vector<PooledPtr> list() {
    return loop_->call([&] { return registry_->list(); });
  }
  PooledPtr find(const std::string& id) {
    return loop_->call([&] { return registry_->find(id); });
  }
  std::optional<GoneList::Entry> findGone(const std::string& id) {
    return loop_->call([&] { return registry_->findGone(id); });
  }
  // True once a new sandbox gets this slot.
  bool slotComesFree(uint32_t slot) {
    return eventually([&] {
      const PooledPtr pooled = createOne();
      if (pooled->record.slot == slot) return true;
      retire(pooled);
      return false;
    });
  }
  void tickIn(int64_t ms) {
    loop_->call([&] { registry_->tick(monotonicMs() + ms); });
  }
  void retire(const PooledPtr& pooled) {
    loop_->call([&] { registry_->retire(pooled, Death::kKilled); });
  }

  static StartRequest command(std::string line, Kind kind = Kind::kExec) {
    StartRequest request;
    request.spec.kind = kind;
    request.spec.argv = {"/bin/sh", "-c", std::move(line)};
    request.spec.env = {"PATH=/usr/bin:/bin"};
    request.spec.cwd = "/";
    request.spec.onDisconnect = OnDisconnect::kKeep;
    request.cmd = "\"x\"";
    return request;
  }
  ExecPtr start(const PooledPtr& pooled, const std::string& line) {
    auto started = loop_->await(pooled->sandbox.start(command(line, Kind::kProcess)));
    EXPECT_TRUE(started) << started.error().message;
    return started ? started->exec : nullptr;
  }
  bool isLive(const ExecPtr& exec) {
    return loop_->call([&] { return exec->live; });
  }

  static bool runs(pid_t pid) { return ::kill(pid, 0) == 0; }
  size_t entriesIn(const char* folder) const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(state() / folder), {}));
  }
  [[nodiscard]] fs::path state() const { return dir_.path() / "state"; }

  testing::TempDir dir_;
  isolation::Mode mode_ = isolation::Mode::kRestricted;
  std::vector<isolation::Plan> plans_;
  std::optional<UserIds> ids_;
  std::atomic<bool> givesBack_ = true;  // what a slot held can be had back
  std::unique_ptr<layers::ImageStore> images_;
  std::vector<std::unique_ptr<testing::LoopThread>>
      oldLoops_;  // what a test still holds needs them
  std::unique_ptr<testing::LoopThread> loop_;
  std::unique_ptr<Registry> registry_;
};

}  // namespace cay::sandbox
