// A local engine with real walls, networks without a way out and a folder of its own. Needs root.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/local_engine.h"
#include "layers/image_index.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::engine {

// Keeps what it is told.
class Told final : public Watcher {
 public:
  void changed(const std::string& id, const Status& status) override {
    const std::scoped_lock lock(mutex_);
    if (!told_[id].empty() && !isTerminal(told_[id].back().stage) &&
        told_[id].back().stage > status.stage) {
      ADD_FAILURE() << id << " goes back to " << stageName(status.stage);
    }
    if (!told_[id].empty() && isTerminal(told_[id].back().stage)) {
      EXPECT_EQ(told_[id].back(), status) << id << " changes after its end";
    }
    told_[id].push_back(status);
  }
  Status last(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    return told_[id].empty() ? Status() : told_[id].back();
  }
  std::vector<Status> all(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    return told_[id];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::vector<Status>> told_;
};

// The image `host` takes seconds to make: tests of one process pass it on.
class SharedImages {
 public:
  static void lend(const std::string& state) {
    std::error_code ignored;
    std::filesystem::create_directories(state + "/sandboxes");
    std::filesystem::rename(folder(), state + "/sandboxes/images", ignored);
  }
  static void takeBack(const std::string& state) {
    std::error_code ignored;
    std::filesystem::rename(state + "/sandboxes/images", folder(), ignored);
  }

 private:
  static std::filesystem::path folder() {
    static const testing::TempDir dir;
    return dir.path() / "images";
  }
};

inline LocalOptions testOptions(const std::string& state, const std::string& leases) {
  LocalOptions out;
  out.state = state;
  // Beside the test in the build.
  out.cayHost = std::filesystem::canonical("/proc/self/exe").parent_path() / "cay-host";
  out.networks.outbound = Outbound::kNone;
  out.networks.spares = 2;
  out.networks.leases = leases + "/uplinks";
  out.leases = leases + "/ids";
  out.flavors = Flavors::ofMachine({.cpus = 2, .memoryBytes = 32ULL << 30, .gpus = {}});
  return out;
}

class LocalEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can raise all walls";
    std::filesystem::create_directories(state());
    SharedImages::lend(state());
    options_ = testOptions(state(), dir_.path() / "leases");
  }
  void TearDown() override {
    if (engine_) {
      loop_->await(engine_->shutdown(Engine::Jobs::kEnd));
      close();
    }
    SharedImages::takeBack(state());
  }

  void open(std::vector<JobSpec> known = {}) {
    loop_ = std::make_unique<testing::LoopThread>();
    engine_ = std::make_unique<LocalEngine>(loop_->io(), options_);
    const auto opened = loop_->await(engine_->open(std::move(known), told_));
    ASSERT_TRUE(opened) << opened.error().message;
  }
  // As if it had been killed: nothing more happens, and nothing is taken down.
  void close() {
    loop_->stop();
    engine_.reset();
    loop_.reset();
  }

  static JobSpec job(const std::string& script) {
    JobSpec spec;
    spec.id = "j" + randomHex(6);
    spec.ns = "me";
    spec.image = "host";
    spec.command = {"/bin/sh", "-c", script};
    spec.flavor = "cpu-basic";
    spec.timeoutMs = 60'000;
    return spec;
  }
  JobSpec submit(JobSpec spec) {
    const auto submitted = loop_->await(engine_->submit(spec));
    EXPECT_TRUE(submitted) << submitted.error().message;
    return spec;
  }
  Status status(const std::string& id) {
    const auto found = loop_->call([&] { return engine_->inspect(id); });
    return found ? *found : Status();
  }
  Status awaitStage(const std::string& id, Stage stage) {
    (void)testing::eventually([&] { return status(id).stage >= stage; });
    const Status found = status(id);
    EXPECT_EQ(stageName(found.stage), stageName(stage)) << found.message;
    return found;
  }
  Status awaitEnd(const std::string& id) {
    EXPECT_TRUE(testing::eventually([&] { return isTerminal(status(id).stage); }))
        << stageName(status(id).stage) << " " << status(id).message;
    return status(id);
  }
  std::vector<std::string> lines(const std::string& id, std::optional<uint64_t> tail = {}) {
    std::vector<std::string> out;
    auto stream = loop_->await(engine_->logs(id, tail));
    if (!stream) {
      ADD_FAILURE() << stream.error().message;
      return out;
    }
    int64_t last = 0;
    while (true) {
      auto event = loop_->await((*stream)->next());
      if (!event) {
        ADD_FAILURE() << event.error().message;
        break;
      }
      if (!*event) break;
      EXPECT_GT((*event)->timeUs, last);
      last = (*event)->timeUs;
      out.push_back((*event)->text);
    }
    // It is read to its end on the loop, where it lives.
    loop_->call([&] { stream->reset(); });
    return out;
  }
  [[nodiscard]] std::string state() const {
    return std::filesystem::canonical(dir_.path()) / "state";
  }

  testing::TempDir dir_;
  LocalOptions options_;
  Told told_;
  std::unique_ptr<testing::LoopThread> loop_;
  std::unique_ptr<LocalEngine> engine_;
};

}  // namespace cay::engine
