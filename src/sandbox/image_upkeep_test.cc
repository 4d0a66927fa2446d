#include "sandbox/image_upkeep.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHour = ImageUpkeep::kRemoveEveryMs;

using testing::eventually;

// A small machine of our own, in a folder, of which the image `host` is made.
class ImageUpkeepTest : public ::testing::Test {
 protected:
  ImageUpkeepTest() {
    for (const char* folder : {"machine/etc", "machine/usr/bin", "images/host"}) {
      fs::create_directories(dir_.path() / folder);
    }
    (void)dir_.write("machine/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
  }
  ~ImageUpkeepTest() override { loop_.stop(); }

  void tick(int64_t nowMs) {
    loop_.call([&] { upkeep_.tick(nowMs, [&] { return inUse_; }); });
  }
  // At a time when versions are removed: waits until the work before is done, and calls `between`
  // before this one begins.
  void removeAt(int64_t nowMs, const std::function<void()>& between = [] {}) {
    bool asked = false;
    const auto inUse = [&] {
      asked = true;
      between();
      return inUse_;
    };
    EXPECT_TRUE(eventually([&] {
      loop_.call([&] { upkeep_.tick(nowMs, inUse); });
      return asked;
    }));
  }

  void awaitWork() {
    EXPECT_TRUE(eventually([&] {
      bool working = true;
      loop_.call([&] { working = upkeep_.working(); });
      return !working;
    }));
  }

  void changeMachine(const std::string& program) {
    (void)dir_.write("machine/usr/bin/" + program, "x");
  }
  std::string current() { return images_.resolve("host").value().version; }
  [[nodiscard]] fs::path folderOf(const std::string& version) const {
    return dir_.path() / "images/host" / version;
  }

  testing::TempDir dir_;
  std::set<std::string> inUse_;
  testing::LoopThread loop_;
  layers::ImageStore images_{{.folder = dir_.path() / "images",
                              .roots = {},
                              .mode = isolation::Mode::kUnprivileged,
                              .machine = dir_.path() / "machine"}};
  ImageUpkeep upkeep_{loop_.io(), images_};
};

TEST_F(ImageUpkeepTest, AChangedMachineIsSeenWithinSeconds) {
  const std::string first = current();
  removeAt(0);
  changeMachine("tool");
  EXPECT_EQ(current(), first) << "making sandboxes must not wait for this";
  EXPECT_TRUE(eventually([&] {
    tick(ImageUpkeep::kLookEveryMs);
    return current() != first;
  }));
}

TEST_F(ImageUpkeepTest, WhatNoSandboxUsesIsRemovedAtTheStart) {
  for (const char* version : {"old.1", "used.1", "new-0123456789abcdef"}) {
    fs::create_directories(folderOf(version) / "skeleton");
  }
  inUse_ = {"used.1"};
  const std::string version = current();
  removeAt(0);
  EXPECT_TRUE(eventually([&] {
    return !fs::exists(folderOf("old.1")) && !fs::exists(folderOf("new-0123456789abcdef"));
  }));
  removeAt(kHour);
  EXPECT_TRUE(fs::exists(folderOf("used.1")));
  EXPECT_TRUE(fs::exists(folderOf(version)));
}

TEST_F(ImageUpkeepTest, AVersionThatASandboxMayJustGetStays) {
  const std::string first = current();
  removeAt(0);
  awaitWork();
  changeMachine("tool");
  removeAt(kHour);
  // The last removal found that the machine has changed; a sandbox may have got the older version
  // just before.
  removeAt(2 * kHour, [&] {
    EXPECT_NE(current(), first);
    EXPECT_TRUE(fs::exists(folderOf(first)));
  });
  EXPECT_TRUE(eventually([&] { return !fs::exists(folderOf(first)); }));
  EXPECT_TRUE(fs::exists(folderOf(current())));
}

TEST_F(ImageUpkeepTest, AnImageThatCannotBeMadeRemovesNothing) {
  const std::string first = current();
  fs::rename(dir_.path() / "machine", dir_.path() / "away");
  removeAt(0);
  removeAt(kHour);
  EXPECT_TRUE(fs::exists(folderOf(first)));
  EXPECT_EQ(current(), first) << "sandboxes are made of the last one";
}

}  // namespace
}  // namespace cay::sandbox
