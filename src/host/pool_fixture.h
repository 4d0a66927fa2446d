// A pool in restricted mode without keepers: enough for everything that starts no command, and it
// needs no rights.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "net/worker_pool.h"
#include "sandbox/registry.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::host {

class PoolFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    // The homes of sandboxes must be reachable for their users.
    std::filesystem::permissions(dir_.path(), std::filesystem::perms{0711});
    auto folder = sandbox::PoolFolder::open(dir_.path() / "state");
    ASSERT_TRUE(folder) << folder.error().message;
    ASSERT_TRUE(folder->fitFor(kMode));
    images_ = std::make_unique<layers::ImageStore>(
        layers::ImageStore::Options{.folder = folder->imagesPath(), .roots = {}, .mode = kMode});
    sandbox::Registry::Options options;
    options.mode = kMode;
    options.images = images_.get();
    options.spawnKeeper = [](const isolation::Plan&, Fd) {
      return fail(Code::kExhausted, "no keepers here");
    };
    auto registry =
        loop_.await(sandbox::Registry::open(loop_.io(), std::move(*folder), std::move(options)));
    ASSERT_TRUE(registry) << registry.error().message;
    registry_ = std::move(*registry);
  }
  void TearDown() override { loop_.stop(); }

  sandbox::PooledPtr create(sandbox::PoolSpec spec = {}) {
    sandbox::Registry::CreateRequest request;
    request.spec = std::move(spec);
    return loop_.await(registry_->create(std::move(request))).value().sandboxes.at(0);
  }

  static constexpr auto kMode = isolation::Mode::kRestricted;

  testing::TempDir dir_;
  testing::LoopThread loop_;
  net::WorkerPool workers_{1};
  std::unique_ptr<layers::ImageStore> images_;
  std::unique_ptr<sandbox::Registry> registry_;
};

}  // namespace cay::host
