#include "sandbox/gone_list.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/ids.h"
#include "sys/file.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;

class GoneListTest : public ::testing::Test {
 protected:
  GoneListTest()
      : folder_(sys::openAt(AT_FDCWD, dir_.path().c_str(), O_RDONLY | O_DIRECTORY).value()) {}

  GoneList open(int64_t now = kNow) {
    auto list = GoneList::open(folder_.get(), "gone.jsonl", now);
    EXPECT_TRUE(list) << list.error().message;
    return std::move(*list);
  }
  [[nodiscard]] std::string file() const { return dir_.path() / "gone.jsonl"; }

  testing::TempDir dir_;
  Fd folder_;
};

TEST_F(GoneListTest, TheDeadAreKnownForAnHourWithTheirTokenAndCause) {
  GoneList list = open();
  const std::string id = newId("s");
  const std::string token = randomHex(32);
  ASSERT_TRUE(list.add(id, token, Death::kEvicted, kNow));
  const auto found = list.find(id, kNow + GoneList::kKeptMs - 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, token);
  EXPECT_EQ(found->death, Death::kEvicted);
  EXPECT_FALSE(list.find(id, kNow + GoneList::kKeptMs));
  EXPECT_FALSE(list.find(newId("s"), kNow));
  EXPECT_FALSE(list.find("s-short", kNow));
}

TEST_F(GoneListTest, ARestartForgetsNobodyAndDropsTheOld) {
  const std::string old = newId("s");
  const std::string young = newId("s");
  const std::string token = randomHex(32);
  {
    GoneList list = open();
    ASSERT_TRUE(list.add(old, randomHex(32), Death::kKilled, kNow));
    ASSERT_TRUE(list.add(young, token, Death::kExpired, kNow + 1000));
  }
  GoneList list = open(kNow + GoneList::kKeptMs);
  EXPECT_EQ(list.size(), 1U);
  ASSERT_TRUE(list.find(young, kNow + GoneList::kKeptMs));
  EXPECT_EQ(list.find(young, kNow + GoneList::kKeptMs)->token, token);
  // And once more, from what the restarted one wrote.
  EXPECT_TRUE(open(kNow + GoneList::kKeptMs).find(young, kNow + GoneList::kKeptMs));
}

TEST_F(GoneListTest, ALineThatWasCutByADeathOfTheHostHarmsNothing) {
  const std::string id = newId("s");
  {
    GoneList list = open();
    ASSERT_TRUE(list.add(id, randomHex(32), Death::kKilled, kNow));
  }
  std::ofstream(file(), std::ios::app) << R"({"id":"s-00)";
  GoneList list = open();
  EXPECT_EQ(list.size(), 1U);
  EXPECT_TRUE(list.find(id, kNow));
}

TEST_F(GoneListTest, ItsSizeIsBoundedInMemoryAndOnDisk) {
  GoneList list = open();
  const std::string token(64, 'a');
  std::string last;
  for (size_t i = 0; i < GoneList::kMost + 20'000; ++i) {
    last = newId("s");
    ASSERT_TRUE(list.add(last, token, Death::kKilled, kNow));
  }
  EXPECT_EQ(list.size(), GoneList::kMost);
  EXPECT_TRUE(list.find(last, kNow));
  EXPECT_LT(std::filesystem::file_size(file()), 160 * (GoneList::kMost + 12'000));
}

TEST_F(GoneListTest, OnlyTheOwnerCanReadTheFile) {
  (void)open();
  EXPECT_EQ(std::filesystem::status(file()).permissions() & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

}  // namespace
}  // namespace cay::sandbox
