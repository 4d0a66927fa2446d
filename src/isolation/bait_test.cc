#include "isolation/bait.h"

#include <gtest/gtest.h>
#include <sys/shm.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "testing/temp_dir.h"

namespace cay::isolation {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  return out;
}

TEST(Bait, TravelsInArguments) {
  const testing::TempDir folder;
  Plan plan;
  plan.network = Network::kNone;
  plan.limits = {.memoryBytes = 1 << 26, .pids = 20, .milliCpus = 0, .diskBytes = 0};
  const auto laid = LaidBait::lay(folder.path(), plan);
  ASSERT_TRUE(laid) << laid.error().message;
  std::vector<std::string> arguments = laid->bait().toArguments();
  const Bait back = Bait::fromArguments(pointers(arguments));
  EXPECT_EQ(back, laid->bait());
  EXPECT_EQ(back.pids, 20U);
  EXPECT_EQ(back.network, Network::kNone);
  EXPECT_EQ(back.process, ::getpid());
  EXPECT_GT(back.processStart, 0U);
  EXPECT_NE(back.port, 0);
  EXPECT_FALSE(back.ids.empty());
}

TEST(Bait, NothingIsLeftOfIt) {
  const testing::TempDir folder;
  std::optional<LaidBait> laid = LaidBait::lay(folder.path(), Plan{}).value();
  const int segment = laid->bait().sharedMemory;
  shmid_ds state{};
  ASSERT_EQ(::shmctl(segment, IPC_STAT, &state), 0);
  laid.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_NE(::shmctl(segment, IPC_STAT, &state), 0);
}

}  // namespace
}  // namespace cay::isolation
