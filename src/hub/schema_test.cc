#include "hub/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "hub/identity_rows.h"
#include "hub/job_rows.h"
#include "hub/schedule_rows.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using cay::testing::TempDir;
using ::testing::HasSubstr;

class SchemaTest : public ::testing::Test {
 protected:
  // What an earlier program left, from testdata.
  void restore(const char* dump) const {
    const std::ifstream in(std::string(CAY_HUB_TESTDATA "/") + dump);
    std::ostringstream sql;
    sql << in.rdbuf();
    auto database = Database::open(file());
    ASSERT_TRUE(database) << database.error().message;
    const auto restored = database->execute(sql.str().c_str());
    ASSERT_TRUE(restored) << restored.error().message;
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "hub.db").string(); }

  static int64_t ask(Database& database, const char* sql) {
    const auto number = database.askNumber(sql);
    EXPECT_TRUE(number) << number.error().message;
    return number.value_or(-1);
  }

  TempDir dir_;
};

TEST_F(SchemaTest, AFileIsMadeForItsOwnerAlone) {
  ::umask(0);
  auto database = openHubDatabase(file());
  ASSERT_TRUE(database) << database.error().message;
  ASSERT_TRUE(database->execute("BEGIN IMMEDIATE; COMMIT"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat made{};
    ASSERT_EQ(::stat((file() + suffix).c_str(), &made), 0) << suffix;
    EXPECT_EQ(made.st_mode & 0777, 0600U) << suffix;
  }
  EXPECT_EQ(ask(*database, "PRAGMA user_version"), static_cast<int64_t>(schemaSteps().size()));
  EXPECT_EQ(ask(*database, "PRAGMA foreign_keys"), 1);
  EXPECT_EQ(ask(*database, "SELECT count(*) FROM jobs"), 0);
}

TEST_F(SchemaTest, AnExistingFileLosesTheRightsOfOthers) {
  ASSERT_TRUE(openHubDatabase(file()));
  ::chmod(file().c_str(), 0644);
  ASSERT_TRUE(openHubDatabase(file()));
  struct stat now{};
  ASSERT_EQ(::stat(file().c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0600U);
}

TEST_F(SchemaTest, TheFileOfVersion1IsReadInFull) {
  restore("hub-1.sql");
  auto database = openHubDatabase(file());
  ASSERT_TRUE(database) << database.error().message;
  EXPECT_EQ(ask(*database, "PRAGMA user_version"), static_cast<int64_t>(schemaSteps().size()));

  const auto live = liveJobs(*database);
  ASSERT_TRUE(live) << live.error().message;
  const JobRow running{.seq = 4,
                       .id = "6a0000000000000000000004",
                       .ns = "team",
                       .kind = engine::Kind::kDedicated,
                       .spec = R"({"command":["/bin/sh","-c","x"]})",
                       .secrets = R"({"SBX_TOKEN":"s"})",
                       .labels = {{"hf-sandbox", "1"}, {"name", "b"}},
                       .ports = {49983, 8000},
                       .publicPorts = {8000},
                       .initiatorType = "scheduled-job",
                       .initiatorId = "s1",
                       .initiatorName = "",
                       .stage = engine::Stage::kRunning,
                       .message = "caf\xC3\xA9",
                       .image = "host (alias of python:3.12)",
                       .notes = {"no network"},
                       .attempt = 2,
                       .createdMs = 1767225600020,
                       .startedMs = 1767225603000,
                       .finishedMs = 0,
                       .healthSeen = true,
                       .schedule = "s1"};
  EXPECT_EQ(*live, std::vector{running});
  EXPECT_EQ(lastJobSeq(*database).value(), 7) << "numbers of removed jobs do not come again";
  const auto labelled =
      listJobs(*database, {.ns = "tester", .stages = {}, .labels = {{"name", "a"}}});
  ASSERT_TRUE(labelled);
  ASSERT_EQ(labelled->size(), 1U);
  EXPECT_EQ(labelled->front().stage, engine::Stage::kCompleted);

  const auto identities = readIdentities(*database);
  ASSERT_TRUE(identities);
  ASSERT_EQ(identities->principals.size(), 2U);
  ASSERT_EQ(identities->tokens.size(), 2U);
  EXPECT_EQ(identities->tokens[0].namespaces, (std::vector<std::string>{"tester", "team"}));
  EXPECT_EQ(identities->tokens[1].revokedMs, 1767230000000);
  const auto schedules = readSchedules(*database);
  ASSERT_TRUE(schedules);
  ASSERT_EQ(schedules->size(), 1U);
  EXPECT_EQ(schedules->front().cron, "@hourly");
  EXPECT_FALSE(schedules->front().concurrent);
}

TEST_F(SchemaTest, LaterStepsAreTakenOnceAndKeepWhatIsThere) {
  restore("hub-1.sql");
  const std::array<const char*, 3> steps = {
      schemaSteps()[0], "ALTER TABLE jobs ADD COLUMN extra TEXT NOT NULL DEFAULT 'x'",
      "UPDATE jobs SET extra = extra || 'y'"};
  for (int i = 0; i < 2; ++i) {
    auto database = Database::open(file());
    ASSERT_TRUE(database);
    const auto upgraded = upgradeSchema(*database, steps);
    ASSERT_TRUE(upgraded) << upgraded.error().message;
    EXPECT_EQ(ask(*database, "PRAGMA user_version"), 3);
    EXPECT_EQ(ask(*database, "SELECT count(*) FROM jobs WHERE extra = 'xy'"), 2);
  }
}

TEST_F(SchemaTest, AStepThatFailsUndoesThoseBeforeIt) {
  restore("hub-1.sql");
  auto database = Database::open(file());
  ASSERT_TRUE(database);
  const std::array<const char*, 3> steps = {
      schemaSteps()[0], "ALTER TABLE jobs ADD COLUMN extra TEXT NOT NULL DEFAULT 'x'",
      "INSERT INTO nowhere VALUES(1)"};
  EXPECT_FALSE(upgradeSchema(*database, steps));
  EXPECT_FALSE(database->inTransaction());
  EXPECT_EQ(ask(*database, "PRAGMA user_version"), 1);
  EXPECT_FALSE(database->askNumber("SELECT count(extra) FROM jobs"));
  EXPECT_TRUE(openHubDatabase(file()));
}

TEST_F(SchemaTest, TheFileOfANewerProgramIsLeftAlone) {
  restore("hub-1.sql");
  {
    auto database = Database::open(file());
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("PRAGMA user_version = 999"));
  }
  const auto before = std::filesystem::last_write_time(file());
  const auto refused = openHubDatabase(file());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("newer"));
  EXPECT_EQ(std::filesystem::last_write_time(file()), before);
}

TEST_F(SchemaTest, FilesOfOthersAreLeftAlone) {
  {
    auto database = Database::open(file());
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("CREATE TABLE theirs(x)"));
  }
  const auto other = openHubDatabase(file());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kConflict);
  auto database = Database::open(file());
  ASSERT_TRUE(database);
  EXPECT_EQ(ask(*database, "SELECT count(*) FROM sqlite_schema"), 1);

  const std::string garbage = dir_.write("garbage", std::string(5000, 'x'));
  const auto unreadable = openHubDatabase(garbage);
  ASSERT_FALSE(unreadable);
  EXPECT_THAT(unreadable.error().message, HasSubstr("not a database"));

  std::filesystem::create_symlink(file(), dir_.path() / "link");
  EXPECT_FALSE(openHubDatabase((dir_.path() / "link").string())) << "a link is not followed";
  EXPECT_FALSE(openHubDatabase((dir_.path() / "no" / "folder").string()));
}

TEST_F(SchemaTest, SeveralProcessesMayMakeItAtOnce) {
  std::array<std::thread, 4> threads;
  std::array<std::string, 4> errors;
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([&, i] {
      const auto database = openHubDatabase(file());
      if (!database) errors[i] = database.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace cay::hub
