#include "hub/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/schema.h"
#include "hub/store_fixture.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using cay::testing::TempDir;
using engine::Stage;
using engine::Status;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Millis kLong{15'000};

class JobTableTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(settle()); }

  JobPtr add(const std::string& id, engine::Pairs labels = {}) {
    JobRow row = jobRow(0);
    row.id = id;
    row.labels = std::move(labels);
    auto added = store_.await(table_.add(std::move(row)));
    EXPECT_TRUE(added) << added.error().message;
    return added.value_or(nullptr);
  }
  void tell(const std::string& id, Stage stage, const std::string& message = "") {
    Status status;
    status.stage = stage;
    status.message = message;
    store_.loop().call([&] { table_.changed(id, status); });
  }
  bool settle() { return store_.await(table_.settled(kLong)); }
  Stage storedStage(const std::string& id) { return store_.await(store_->job(id)).value().stage; }

  std::vector<std::string> list(std::vector<Stage> stages, engine::Pairs labels = {},
                                int64_t before = INT64_MAX, uint32_t limit = 100) {
    const auto rows = store_.await(table_.list({.ns = "tester",
                                                .stages = std::move(stages),
                                                .labels = std::move(labels),
                                                .beforeSeq = before,
                                                .limit = limit}));
    EXPECT_TRUE(rows) << rows.error().message;
    std::vector<std::string> ids;
    for (const JobRow& row : rows.value_or(std::vector<JobRow>())) ids.push_back(row.id);
    return ids;
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "hub.db").string(); }

  TempDir dir_;
  OpenStore store_{file()};
  JobTable table_{store_.loop().io(), *store_.operator->()};
};

TEST_F(JobTableTest, JobsGetRisingNumbersAndAreStoredBeforeTheyAreThere) {
  const JobPtr a = add("a");
  const JobPtr b = add("b");
  EXPECT_EQ(a->row.seq, 1);
  EXPECT_EQ(b->row.seq, 2);
  EXPECT_EQ(store_.await(store_->job("a")).value(), a->row);
  JobRow twin = jobRow(0);
  twin.id = "a";
  EXPECT_EQ(store_.await(table_.add(twin)).error().code, Code::kConflict);
  EXPECT_EQ(table_.find("a"), a);
}

// Every pair of stages: what may follow does, everything else changes nothing.
TEST_F(JobTableTest, StagesMoveForwardOnly) {
  constexpr Stage kAll[] = {Stage::kScheduling, Stage::kRunning, Stage::kCompleted, Stage::kError,
                            Stage::kCanceled};
  for (const Stage from : kAll) {
    for (const Stage to : kAll) {
      const std::string id =
          "x" + std::to_string(static_cast<int>(from) * 10 + static_cast<int>(to));
      const JobPtr job = add(id);
      if (from != Stage::kScheduling) tell(id, from, "before");
      tell(id, to, "after");
      const bool moves = engine::mayFollow(from, to) || (from == to && !engine::isTerminal(from));
      EXPECT_EQ(job->row.stage, moves ? to : from) << id;
      EXPECT_EQ(job->row.message == "after", moves) << id;
    }
  }
  EXPECT_TRUE(settle());
  tell("nobody", Stage::kRunning);
  EXPECT_EQ(table_.find("nobody"), nullptr);
}

TEST_F(JobTableTest, TimesAreKeptAndFilledIn) {
  const JobPtr job = add("a");
  Status status;
  status.stage = Stage::kRunning;
  status.serving = true;
  status.startedAtMs = 100;
  status.image = "host (alias of python:3.12)";
  status.notes = {"no network"};
  store_.loop().call([&] { table_.changed("a", status); });
  EXPECT_TRUE(job->serving);
  EXPECT_EQ(job->row.startedMs, 100);
  EXPECT_THAT(job->row.notes, ElementsAre("no network"));
  status.startedAtMs = 200;
  status.attempt = 2;
  status.stage = Stage::kError;
  store_.loop().call([&] { table_.changed("a", status); });
  EXPECT_FALSE(job->serving) << "an ended job serves nobody";
  EXPECT_EQ(job->row.startedMs, 100) << "of its first attempt";
  EXPECT_EQ(job->row.attempt, 2U);
  EXPECT_GT(job->row.finishedMs, 1'700'000'000'000) << "an end without a time is now";
  EXPECT_TRUE(settle());
  EXPECT_EQ(store_.await(store_->job("a")).value(), job->row);
}

net::Task<Stage> stageAfterChange(JobPtr job) {
  co_await job->changed.wait(kLong);
  co_return job->row.stage;
}

TEST_F(JobTableTest, WaitersSeeWhatChanged) {
  const JobPtr job = add("a");
  auto seen =
      boost::asio::co_spawn(store_.loop().io(), stageAfterChange(job), boost::asio::use_future);
  store_.loop().call([] {});  // it waits now
  tell("a", Stage::kRunning);
  EXPECT_EQ(seen.get(), Stage::kRunning);
}

TEST_F(JobTableTest, ListsJoinWhatIsHereAndWhatIsStored) {
  for (const char* id : {"a", "b", "c", "d"}) add(id, {{"of", id[0] < 'c' ? "one" : "two"}});
  tell("a", Stage::kCanceled);
  tell("b", Stage::kRunning);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(list({}), ElementsAre("d", "c", "b", "a")) << "before and after it is stored";
    EXPECT_THAT(list({Stage::kCanceled}), ElementsAre("a"));
    EXPECT_THAT(list({Stage::kRunning, Stage::kCanceled}), ElementsAre("b", "a"));
    EXPECT_THAT(list({}, {{"of", "two"}}), ElementsAre("d", "c"));
    EXPECT_THAT(list({}, {}, 3, 1), ElementsAre("b"));
    EXPECT_TRUE(settle());
  }
}

TEST_F(JobTableTest, JobsThatEndedLongAgoAreInTheStoreAlone) {
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) {
    const std::string id = "j" + std::to_string(i);
    add(id);
    tell(id, Stage::kCompleted, "done");
    if (i % 50 == 0) EXPECT_TRUE(settle());
  }
  EXPECT_TRUE(settle());
  EXPECT_EQ(table_.find("j0"), nullptr);
  EXPECT_NE(table_.find("j299"), nullptr);
  const auto old = store_.await(table_.get("j0"));
  ASSERT_TRUE(old);
  EXPECT_EQ((*old)->row.message, "done");
  EXPECT_EQ(store_.await(table_.get("nobody")).error().code, Code::kNotFound);
  // Page by page, each once.
  std::vector<std::string> all;
  int64_t before = INT64_MAX;
  while (true) {
    const auto page = list({}, {}, before, 77);
    if (page.empty()) break;
    all.insert(all.end(), page.begin(), page.end());
    before = store_.await(table_.get(page.back())).value()->row.seq;
  }
  ASSERT_EQ(all.size(), kJobs);
  EXPECT_EQ(all.front(), "j299");
  EXPECT_EQ(all.back(), "j0");

  const auto gone = store_.await(table_.forgetEnded(0, 10));
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->size(), kJobs - 10U);
  EXPECT_EQ(table_.find("j200"), nullptr);
  EXPECT_EQ(list({}).size(), 10U);
}

TEST_F(JobTableTest, ClientsChangeLabelsAndPorts) {
  const JobPtr job = add("a", {{"k", "1"}});
  ASSERT_TRUE(store_.await(table_.relabel(job, {{"k", "2"}})));
  ASSERT_TRUE(store_.await(table_.expose(job, {.all = {80, 81}, .open = {81}})));
  store_.loop().call([&] { table_.reached(*job); });
  EXPECT_TRUE(settle());
  const JobRow stored = store_.await(store_->job("a")).value();
  EXPECT_EQ(stored, job->row);
  EXPECT_TRUE(stored.healthSeen);
  EXPECT_THAT(stored.publicPorts, ElementsAre(81));
  EXPECT_THAT(list({}, {{"k", "1"}}), IsEmpty());
  EXPECT_THAT(list({}, {{"k", "2"}}), ElementsAre("a"));
}

TEST_F(JobTableTest, ANewProcessGoesOnWhereTheOldOneEnded) {
  add("a");
  add("b");
  tell("a", Stage::kCompleted);
  EXPECT_TRUE(settle());
  auto snapshot = store_.await(store_->load());
  ASSERT_TRUE(snapshot);
  JobTable next(store_.loop().io(), *store_.operator->());
  store_.loop().call([&] { next.restore(std::move(snapshot->live), snapshot->lastSeq); });
  EXPECT_EQ(next.live().size(), 1U);
  EXPECT_EQ(next.live().front()->row.id, "b");
  EXPECT_EQ(store_.await(next.get("a")).value()->row.stage, Stage::kCompleted);
  JobRow row = jobRow(0);
  row.id = "c";
  EXPECT_EQ(store_.await(next.add(row)).value()->row.seq, 3);
}

TEST_F(JobTableTest, WhatCannotBeStoredIsTriedAgain) {
  const JobPtr job = add("a");
  auto other = openHubDatabase(file());
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->execute("ALTER TABLE jobs RENAME TO away"));
  tell("a", Stage::kRunning);
  EXPECT_FALSE(store_.await(table_.settled(Millis(200))));
  EXPECT_EQ(job->row.stage, Stage::kRunning) << "clients see it all the same";
  EXPECT_THAT(list({Stage::kRunning}), ElementsAre("a"));
  ASSERT_TRUE(other->execute("ALTER TABLE away RENAME TO jobs"));
  EXPECT_TRUE(settle());
  EXPECT_EQ(storedStage("a"), Stage::kRunning);
}

}  // namespace
}  // namespace cay::hub
