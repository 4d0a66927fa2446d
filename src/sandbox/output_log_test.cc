#include "sandbox/output_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

constexpr auto kRefuse = LogWriter::Existing::kRefuse;
constexpr LogShape kSmall{.headBytes = 100, .ringBytes = 50};

class OutputLog : public ::testing::Test {
 protected:
  OutputLog() : folder_(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  LogWriter create() {
    return LogWriter::create(folder_.get(), "log", kSmall, "meta text", kRefuse).value();
  }
  LogReader open() { return LogReader::open(folder_.get(), "log").value(); }

  static std::string readAt(const LogReader& log, StreamId stream, uint64_t from, uint64_t to) {
    std::string out;
    char buffer[16];
    while (from < to) {
      const auto count = log.read(
          stream, from, std::span(buffer).first(std::min<uint64_t>(sizeof buffer, to - from)));
      if (!count || *count == 0) break;
      out.append(buffer, *count);
      from += *count;
    }
    return out;
  }

  testing::TempDir dir_;
  Fd folder_;
};

// Byte i of a stream, so that any mix-up shows.
std::string sample(size_t length) {
  std::string out;
  for (size_t i = 0; i < length; ++i) out.push_back(static_cast<char>('!' + i * 7 % 90));
  return out;
}

TEST_F(OutputLog, KeepsBothStreamsAndTheMetaText) {
  LogWriter writer = create();
  writer.append(kStdout, "hello ");
  writer.append(kStderr, "oops");
  writer.append(kStdout, "world");
  ASSERT_TRUE(writer.saveTotals());
  const LogReader log = open();
  const auto counters = log.counters().value();
  EXPECT_EQ(counters.totals.at[kStdout], 11U);
  EXPECT_EQ(counters.totals.at[kStderr], 4U);
  EXPECT_EQ(counters.lostFrom.at[kStdout], kNoLimit);
  EXPECT_EQ(readAt(log, kStdout, 0, 11), "hello world");
  EXPECT_EQ(readAt(log, kStdout, 6, 11), "world");
  EXPECT_EQ(readAt(log, kStderr, 0, 4), "oops");
  EXPECT_EQ(log.meta().value(), "meta text");
  EXPECT_FALSE(log.exit().value().has_value());
}

TEST_F(OutputLog, LongOutputKeepsHeadAndTailAndTellsTheGap) {
  const std::string all = sample(1000);
  LogWriter writer = create();
  for (size_t at = 0; at < all.size(); at += 33)
    writer.append(kStdout, std::string_view(all).substr(at, 33));
  const Kept kept = keptOf(kSmall, all.size());
  EXPECT_EQ(kept.headEnd, 100U);
  EXPECT_EQ(kept.tailStart, 950U);
  const LogReader log = open();
  EXPECT_EQ(readAt(log, kStdout, 0, kept.headEnd), all.substr(0, 100));
  EXPECT_EQ(readAt(log, kStdout, kept.tailStart, 1000), all.substr(950));
}

TEST_F(OutputLog, NothingIsLostUpToHeadPlusRing) {
  const std::string all = sample(150);
  LogWriter writer = create();
  writer.append(kStderr, all);
  const Kept kept = keptOf(kSmall, 150);
  EXPECT_EQ(kept.headEnd, kept.tailStart);
  EXPECT_EQ(readAt(open(), kStderr, 0, 150), all);
}

TEST_F(OutputLog, TheExitRecordIsThereOnceSaved) {
  LogWriter writer = create();
  writer.append(kStdout, "x");
  ExitRecord record;
  record.exitCode = 3;
  record.error = std::string(5000, 'e');  // longer than the place for it
  ASSERT_TRUE(writer.saveExit(record));
  const auto back = open().exit().value();
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->exitCode, 3);
  EXPECT_LT(back->error.size(), 1000U);
  EXPECT_EQ(open().counters()->totals.at[kStdout], 1U);
  EXPECT_EQ(open().meta().value(), "meta text");
}

TEST_F(OutputLog, AnOverwrittenFileShowsNothingOfItsFormerLife) {
  {
    LogWriter old = create();
    old.append(kStdout, "secret");
    ExitRecord record;
    record.exitCode = 1;
    ASSERT_TRUE(old.saveExit(record));
  }
  ASSERT_TRUE(
      LogWriter::create(folder_.get(), "log", kSmall, "m", LogWriter::Existing::kOverwrite));
  const LogReader log = open();
  EXPECT_FALSE(log.exit().value().has_value());
  EXPECT_EQ(log.counters()->totals.at[kStdout], 0U);
  EXPECT_EQ(log.meta().value(), "m");
}

TEST_F(OutputLog, RefusesWhatIsNoLog) {
  EXPECT_FALSE(LogReader::open(folder_.get(), "missing"));
  const Fd file(::openat(folder_.get(), "other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(file.get(), sample(200).data(), 200), 200);
  EXPECT_FALSE(LogReader::open(folder_.get(), "other"));
  EXPECT_TRUE(LogWriter::create(folder_.get(), "log", kSmall, "", kRefuse).has_value());
  EXPECT_FALSE(LogWriter::create(folder_.get(), "log", kSmall, "", kRefuse))
      << "an existing log is never reused";
}

TEST_F(OutputLog, BytesThatCannotBeStoredAreCountedAndToldAsLost) {
  LogWriter writer = create();
  writer.append(kStdout, "kept");
  // Beyond this size writes fail, as on a full disk.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit tiny = before;
  tiny.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tiny), 0);
  writer.append(kStdout, "lost");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  writer.append(kStdout, "more");
  ASSERT_TRUE(writer.saveTotals());
  const auto counters = open().counters().value();
  EXPECT_EQ(counters.totals.at[kStdout], 12U);
  EXPECT_EQ(counters.lostFrom.at[kStdout], 4U);
}

}  // namespace
}  // namespace cay::sandbox
