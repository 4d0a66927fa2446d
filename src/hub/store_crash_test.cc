// What the store promises when the process or the disk under it gives up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <thread>

#include "base/fd.h"
#include "hub/schema.h"
#include "hub/store_fixture.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using cay::testing::TempDir;

// Inserts `first`, `first` + kWriters, … for ever, and tells each that was committed.
constexpr int64_t kWriters = 8;
net::Task<> writeForEver(Store& store, int64_t first, int tell) {
  for (int64_t seq = first;; seq += kWriters) {
    if (!co_await store.insert(jobRow(seq))) ::_exit(1);
    if (::write(tell, &seq, sizeof seq) != sizeof seq) ::_exit(2);
  }
}

[[noreturn]] void writeUntilKilled(const std::string& file, int tell) {
  OpenStore store(file);
  const auto past = store.await(store->load());
  if (!past) ::_exit(3);
  for (int64_t i = 1; i <= kWriters; ++i) {
    boost::asio::co_spawn(store.loop().io(),
                          writeForEver(*store.operator->(), past->lastSeq + i, tell),
                          boost::asio::detached);
  }
  ::pause();
  ::_exit(4);
}

TEST(StoreCrash, WhatWasAcknowledgedSurvivesAKill) {
  const TempDir dir;
  const std::string file = (dir.path() / "hub.db").string();
  std::set<int64_t> acknowledged;
  for (int round = 0; round < 8; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) writeUntilKilled(file, pipe[1]);
    ::close(pipe[1]);
    const Fd told(pipe[0]);
    int64_t seq = 0;
    // Killed at another moment of its work each time, and all that it said before is read.
    for (int i = 0; ::read(told.get(), &seq, sizeof seq) == sizeof seq; ++i) {
      acknowledged.insert(seq);
      if (i != 40 + round * 7) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(137 * round));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child gave up by itself: " << WEXITSTATUS(status);

    auto database = openHubDatabase(file);
    ASSERT_TRUE(database) << database.error().message;
    EXPECT_EQ(database
                  ->askNumber("SELECT count(*) FROM pragma_integrity_check WHERE "
                              "integrity_check = 'ok'")
                  .value(),
              1);
    OpenStore store(file);
    const auto all = store.await(store->load());
    ASSERT_TRUE(all) << all.error().message;
    std::set<int64_t> found;
    for (const JobRow& row : all->live) found.insert(row.seq);
    for (const int64_t one : acknowledged) {
      ASSERT_TRUE(found.contains(one)) << one << " is lost after round " << round;
    }
  }
}

// A file system of 1 MiB that only this process sees; false if this machine gives none.
bool mountSmallDisk(const std::string& at) {
  if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) return false;
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", at.c_str(), "tmpfs", 0, "size=1m") == 0;
}

// 0, or the number of the line that failed.
#define CHECK_OR_LINE(condition)       \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

int fillTheDisk(const std::string& folder) {
  CHECK_OR_LINE(mountSmallDisk(folder));
  OpenStore store(folder + "/hub.db");
  JobRow large = jobRow(1);
  large.spec = std::string(20'000, 'x');
  CHECK_OR_LINE(store.await(store->insert(large)));
  {
    std::ofstream filler(folder + "/filler", std::ios::binary);
    const std::string page(4096, 'x');
    while (filler.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) continue;
  }
  int64_t committed = 1;
  Result<> last;
  while (last && committed < 1000) {
    large = jobRow(committed + 1);
    large.spec = std::string(20'000, 'x');
    last = store.await(store->insert(large));
    if (last) ++committed;
  }
  CHECK_OR_LINE(!last);
  CHECK_OR_LINE(last.error().code == Code::kExhausted);
  CHECK_OR_LINE(last.error().sys == ENOSPC);
  CHECK_OR_LINE(store.await(store->load()).value().live.size() == static_cast<size_t>(committed));

  std::filesystem::remove(folder + "/filler");
  CHECK_OR_LINE(store.await(store->insert(large)));
  CHECK_OR_LINE(store.await(store->load()).value().live.size() ==
                static_cast<size_t>(committed) + 1);
  return 0;
}

TEST(StoreCrash, AFullDiskIsToldAndSurvived) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    const int line = fillTheDisk(dir.path().string());
    if (line != 0) std::cerr << __FILE__ << ":" << line << ": failed" << std::endl;
    ::_exit(line == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "see the line above";
}

TEST(StoreCrash, AWriterThatWaitsTooLongIsToldSo) {
  const TempDir dir;
  const std::string file = (dir.path() / "hub.db").string();
  OpenStore store(file);
  auto other = openHubDatabase(file);
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE"));
  const auto late = store.await(store->insert(jobRow(1)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kExhausted);
  EXPECT_EQ(late.error().sys, EAGAIN);
  ASSERT_TRUE(other->execute("ROLLBACK"));
  EXPECT_TRUE(store.await(store->insert(jobRow(1)))) << "later calls succeed";
}

}  // namespace
}  // namespace cay::hub
