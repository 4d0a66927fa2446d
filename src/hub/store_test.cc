#include "hub/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <vector>

#include "hub/schema.h"
#include "hub/store_fixture.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using cay::testing::TempDir;
using engine::Stage;
using ::testing::ElementsAre;

class StoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return (dir_.path() / "hub.db").string(); }

  static JobRow ended(int64_t seq, Stage stage, int64_t finishedMs) {
    JobRow row = jobRow(seq);
    row.stage = stage;
    row.finishedMs = finishedMs;
    return row;
  }
  static JobFilter inNamespace(std::string ns) {
    return {.ns = std::move(ns), .stages = {}, .labels = {}};
  }
  static std::vector<int64_t> list(OpenStore& store, JobFilter filter) {
    std::vector<int64_t> seqs;
    const auto rows = store.await(store->list(std::move(filter)));
    EXPECT_TRUE(rows) << rows.error().message;
    if (rows) {
      for (const JobRow& row : *rows) seqs.push_back(row.seq);
    }
    return seqs;
  }

  TempDir dir_;
};

TEST_F(StoreTest, EverythingComesBackFromTheFile) {
  JobRow job = jobRow(3);
  job.kind = engine::Kind::kPool;
  job.labels = {{"b", "2"}, {"a", "\xE2\x80\xA8 text"}};
  job.ports = {1, 65535};
  job.publicPorts = {65535};
  job.secrets = R"({"K":"v"})";
  job.message = "why \"it\" waits";
  job.notes = {"one", "two"};
  job.schedule = "s";
  const PrincipalRow principal{.id = "p", .name = "tester", .type = "user", .createdMs = 5};
  const TokenRow token{.id = "t",
                       .hash = "h",
                       .hint = "wxyz",
                       .name = "laptop",
                       .role = "user",
                       .principal = "p",
                       .namespaces = {"tester"},
                       .createdMs = 6,
                       .expiresMs = 7};
  const ScheduleRow schedule{.id = "s",
                             .ns = "tester",
                             .spec = "{}",
                             .secrets = "{}",
                             .cron = "@daily",
                             .principal = "p",
                             .suspended = true,
                             .concurrent = false,
                             .lastJob = "job3",
                             .createdMs = 1,
                             .lastMs = 2,
                             .nextMs = 3};
  {
    OpenStore store(file());
    ASSERT_TRUE(store.await(store->insert(job)));
    ASSERT_TRUE(store.await(store->insert(principal)));
    ASSERT_TRUE(store.await(store->insert(token)));
    ASSERT_TRUE(store.await(store->put(schedule)));
  }
  OpenStore store(file());
  const auto all = store.await(store->load());
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_THAT(all->live, ElementsAre(job));
  EXPECT_THAT(all->identities.principals, ElementsAre(principal));
  EXPECT_THAT(all->identities.tokens, ElementsAre(token));
  EXPECT_THAT(all->schedules, ElementsAre(schedule));
  EXPECT_EQ(all->lastSeq, 3);
  EXPECT_EQ(store.await(store->job("job3")).value(), job);
}

TEST_F(StoreTest, UpdatesReplaceStateAndLabels) {
  OpenStore store(file());
  JobRow job = jobRow(1);
  job.labels = {{"a", "1"}};
  ASSERT_TRUE(store.await(store->insert(job)));
  job.labels = {{"b", "2"}};
  job.stage = Stage::kRunning;
  job.message = "up";
  job.ports = {80};
  job.startedMs = 12;
  job.attempt = 2;
  job.healthSeen = true;
  ASSERT_TRUE(store.await(store->update(job)));
  EXPECT_EQ(store.await(store->job("job1")).value(), job);
  EXPECT_THAT(list(store, {.ns = "tester", .stages = {}, .labels = {{"a", "1"}}}), ElementsAre());
  EXPECT_THAT(list(store, {.ns = "tester", .stages = {}, .labels = {{"b", "2"}}}), ElementsAre(1));
  const auto missing = store.await(store->update(jobRow(2)));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(store.await(store->job("job2")).error().code, Code::kNotFound);
}

TEST_F(StoreTest, ListsAreFilteredNewestFirstAndPaged) {
  OpenStore store(file());
  for (int64_t seq = 1; seq <= 6; ++seq) {
    JobRow job = jobRow(seq, seq == 4 ? "other" : "tester");
    job.stage = seq <= 2 ? Stage::kCompleted : Stage::kRunning;
    job.labels = {{"parity", seq % 2 == 0 ? "even" : "odd"}, {"all", "1"}};
    ASSERT_TRUE(store.await(store->insert(job)));
  }
  EXPECT_THAT(list(store, inNamespace("tester")), ElementsAre(6, 5, 3, 2, 1));
  EXPECT_THAT(list(store, inNamespace("other")), ElementsAre(4));
  EXPECT_THAT(list(store, inNamespace("nobody")), ElementsAre());
  EXPECT_THAT(list(store, {.ns = "tester", .stages = {Stage::kCompleted}, .labels = {}}),
              ElementsAre(2, 1));
  EXPECT_THAT(
      list(store, {.ns = "tester", .stages = {Stage::kCompleted, Stage::kRunning}, .labels = {}}),
      ElementsAre(6, 5, 3, 2, 1));
  EXPECT_THAT(list(store, {.ns = "tester", .stages = {Stage::kError}, .labels = {}}),
              ElementsAre());
  EXPECT_THAT(
      list(store, {.ns = "tester", .stages = {}, .labels = {{"parity", "even"}, {"all", "1"}}}),
      ElementsAre(6, 2));
  EXPECT_THAT(
      list(store,
           {.ns = "tester", .stages = {}, .labels = {{"parity", "even"}, {"parity", "odd"}}}),
      ElementsAre());
  EXPECT_THAT(list(store, {.ns = "tester", .stages = {}, .labels = {}, .beforeSeq = 5, .limit = 2}),
              ElementsAre(3, 2));
  EXPECT_THAT(list(store, inNamespace("x' OR 1=1 --")), ElementsAre());
  const auto absurd = store.await(
      store->list({.ns = "tester", .stages = {}, .labels = engine::Pairs(65, {"parity", "even"})}));
  ASSERT_FALSE(absurd);
  EXPECT_EQ(absurd.error().code, Code::kInvalid);
}

TEST_F(StoreTest, EndedJobsAreForgottenByAgeAndByNumber) {
  OpenStore store(file());
  ASSERT_TRUE(store.await(store->insert(ended(1, Stage::kCompleted, 100))));
  ASSERT_TRUE(store.await(store->insert(ended(2, Stage::kError, 300))));
  ASSERT_TRUE(store.await(store->insert(ended(3, Stage::kCanceled, 200))));
  ASSERT_TRUE(store.await(store->insert(jobRow(4))));
  EXPECT_THAT(store.await(store->forgetEnded(150, 10)).value(), ElementsAre("job1"));
  EXPECT_THAT(store.await(store->forgetEnded(0, 1)).value(), ElementsAre("job3"));
  EXPECT_THAT(store.await(store->forgetEnded(0, 1)).value(), ElementsAre());
  EXPECT_THAT(list(store, inNamespace("tester")), ElementsAre(4, 2)) << "one that runs stays";
  ASSERT_TRUE(store.await(store->forgetEnded(INT64_MAX, 0)));
  EXPECT_EQ(store.await(store->load()).value().lastSeq, 4);
}

TEST_F(StoreTest, AWriteThatFailsDoesNotTakeItsNeighboursAlong) {
  OpenStore store(file());
  std::vector<std::future<void>> done;
  std::vector<Result<>> results(20);
  for (int64_t i = 0; i < 20; ++i) {
    // Every fifth has an id that is taken.
    JobRow row = jobRow(i + 1);
    if (i % 5 == 4) row.id = "job1";
    done.push_back(boost::asio::co_spawn(
        store.loop().io(),
        [](Store& into, JobRow job, Result<>& result) -> net::Task<> {
          result = co_await into.insert(std::move(job));
        }(*store.operator->(), std::move(row), results[static_cast<size_t>(i)]),
        boost::asio::use_future));
  }
  for (auto& one : done) one.get();
  for (size_t i = 0; i < results.size(); ++i) {
    if (i % 5 == 4) {
      ASSERT_FALSE(results[i]);
      EXPECT_EQ(results[i].error().code, Code::kConflict);
    } else {
      EXPECT_TRUE(results[i]) << results[i].error().message;
    }
  }
  EXPECT_EQ(list(store, inNamespace("tester")).size(), 16U);
}

TEST_F(StoreTest, WritesThatWaitTogetherAreCommittedTogether) {
  OpenStore store(file());
  ASSERT_TRUE(store.await(store->insert(jobRow(1))));
  auto other = openHubDatabase(file());
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE"));  // nobody else can write
  const auto before = std::filesystem::file_size(file() + "-wal");
  constexpr int64_t kWrites = 60;
  std::vector<std::future<void>> done;
  done.reserve(kWrites);
  for (int64_t i = 0; i < kWrites; ++i) {
    done.push_back(boost::asio::co_spawn(
        store.loop().io(),
        [](Store& into, JobRow job) -> net::Task<> {
          EXPECT_TRUE(co_await into.insert(std::move(job)));
        }(*store.operator->(), jobRow(i + 2)),
        boost::asio::use_future));
  }
  store.loop().call([] {});  // all have been asked for
  ASSERT_TRUE(other->execute("COMMIT"));
  for (auto& one : done) one.get();
  // One commit alone writes five pages and more.
  const auto pages = (std::filesystem::file_size(file() + "-wal") - before) / 4096;
  EXPECT_LT(pages, kWrites * 2);
}

TEST_F(StoreTest, ForeignChangesAreSeenOnce) {
  OpenStore store(file());
  ASSERT_TRUE(store.await(store->insert(PrincipalRow{.id = "p", .name = "n", .type = "user"})));
  ASSERT_TRUE(store.await(store->insert(tokenRow("t", "h", "p"))));
  EXPECT_FALSE(store.await(store->foreignChange()).value()) << "our own writes are not foreign";
  auto other = openHubDatabase(file());
  ASSERT_TRUE(other);
  ASSERT_TRUE(insertToken(*other, tokenRow("u", "i", "p")));
  ASSERT_TRUE(revokeToken(*other, "t", 77));
  ASSERT_TRUE(revokeToken(*other, "t", 99));
  EXPECT_EQ(revokeToken(*other, "x", 1).error().code, Code::kNotFound);
  const auto now = store.await(store->foreignChange());
  ASSERT_TRUE(now);
  ASSERT_TRUE(*now);
  ASSERT_EQ((*now)->tokens.size(), 2U);
  EXPECT_EQ((*now)->tokens[0].revokedMs, 77);
  EXPECT_FALSE(store.await(store->foreignChange()).value());

  ASSERT_TRUE(store.await(store->tokenUsed("t", 500)));
  ASSERT_TRUE(store.await(store->tokenUsed("t", 400)));
  const auto all = store.await(store->load());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->identities.tokens[0].usedMs, 500);
  EXPECT_EQ(all->identities.tokens[0].revokedMs, 77) << "use does not bring it back to life";
}

TEST_F(StoreTest, TokensNeedTheirPrincipalAndSecretsAreUnique) {
  OpenStore store(file());
  const TokenRow token = tokenRow("t", "h", "p");
  EXPECT_EQ(store.await(store->insert(token)).error().code, Code::kConflict);
  ASSERT_TRUE(store.await(store->insert(PrincipalRow{.id = "p", .name = "n", .type = "user"})));
  ASSERT_TRUE(store.await(store->insert(token)));
  TokenRow twin = token;
  twin.id = "u";
  EXPECT_EQ(store.await(store->insert(twin)).error().code, Code::kConflict);
  EXPECT_EQ(store.await(store->removeSchedule("no")).error().code, Code::kNotFound);
}

TEST_F(StoreTest, ABrokenRowIsAnErrorNotACrash) {
  {
    OpenStore store(file());
    ASSERT_TRUE(store.await(store->insert(jobRow(1))));
  }
  for (const char* damage : {"UPDATE jobs SET stage = 1, labels = '[]'",
                             "UPDATE jobs SET labels = '{}', expose = '{\"ports\":[\"x\"]}'",
                             "UPDATE jobs SET expose = 'no json'", "UPDATE jobs SET stage = -7"}) {
    auto database = openHubDatabase(file());
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute(damage));
    OpenStore store(file());
    const auto row = store.await(store->job("job1"));
    ASSERT_FALSE(row) << damage;
  }
}

}  // namespace
}  // namespace cay::hub
