#include "engine/job_logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "base/text.h"
#include "sandbox/line_log.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr int64_t kStartedMs = 1'700'000'000'000;
constexpr int64_t kStartedUs = kStartedMs * 1000;

struct Life {
  int64_t startedAtMs = kStartedMs;
  bool quiet = false;
};

class Fake final : public LoggedJob {
 public:
  explicit Fake(std::shared_ptr<Life> life) : life_(std::move(life)) {}
  [[nodiscard]] int64_t startedAtMs() const override { return life_->startedAtMs; }
  [[nodiscard]] bool isQuiet() const override { return life_->quiet; }

 private:
  std::shared_ptr<Life> life_;
};

class JobLogsTest : public ::testing::Test {
 protected:
  std::string folder(const char* name = "lines") { return dir_.path() / name; }
  sandbox::LineLogWriter writer() {
    return sandbox::LineLogWriter::open(AT_FDCWD, folder(), {}).value();
  }
  void open(std::unique_ptr<LineSource> lines, std::optional<uint64_t> tail = {}) {
    stream_ = loop_.await(openLog(std::make_unique<Fake>(life_), std::move(lines), tail)).value();
  }
  void openKept(std::optional<uint64_t> tail = {}) {
    open(keptLines(folder("later"), folder()), tail);
  }
  std::optional<LogEvent> next() { return loop_.await(stream_->next()).value(); }
  std::vector<std::string> rest() {
    std::vector<std::string> out;
    int64_t last = 0;
    while (auto event = next()) {
      EXPECT_GT(event->timeUs, last) << event->text;
      EXPECT_TRUE(isValidUtf8(event->text));
      last = event->timeUs;
      out.push_back(event->text);
    }
    return out;
  }
  bool changed(int64_t limitMs) { return loop_.await(stream_->changed(Millis(limitMs))); }

  testing::TempDir dir_;
  std::shared_ptr<Life> life_ = std::make_shared<Life>();
  testing::LoopThread loop_;
  std::unique_ptr<LogStream> stream_;
};

TEST_F(JobLogsTest, BeginsWithTheStart) {
  auto log = writer();
  log.append(sandbox::kStdout, "one\ntwo\n", kStartedUs + 5);
  openKept();
  const auto first = next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "===== Job started at 2023-11-14T22:13:20.000Z =====");
  EXPECT_EQ(first->timeUs, kStartedUs);
  EXPECT_THAT(rest(), ElementsAre("one", "two"));
}

TEST_F(JobLogsTest, HasNothingBeforeTheStart) {
  life_->startedAtMs = 0;
  openKept();
  EXPECT_FALSE(next());
  EXPECT_FALSE(changed(1));
  life_->startedAtMs = kStartedMs;
  EXPECT_TRUE(changed(1000));
  EXPECT_THAT(rest(), ElementsAre(StartsWith("===== Job")));
}

TEST_F(JobLogsTest, TheStartComesFirstWhateverTheClockSays) {
  auto log = writer();
  log.append(sandbox::kStdout, "early\n", kStartedUs - 100);
  openKept();
  EXPECT_THAT(rest(), ElementsAre(StartsWith("===== Job"), "early"));
}

TEST_F(JobLogsTest, BytesThatAreNoTextAreReplaced) {
  auto log = writer();
  log.append(sandbox::kStdout, "a\xff\x62\n\xe2\x82\n", kStartedUs + 1);
  openKept();
  EXPECT_THAT(rest(), ElementsAre(StartsWith("====="), "a\xef\xbf\xbd\x62", "\xef\xbf\xbd"));
}

TEST_F(JobLogsTest, ALetterThatIsCutInALongLineStaysWhole) {
  auto log = writer();
  const std::string filler(sandbox::kMaxLineBytes - 1, 'x');
  log.append(sandbox::kStdout, filler + "\xc3\xa9nd\n", kStartedUs + 1);
  openKept();
  const auto all = rest();
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[1] + all[2], filler + "\xc3\xa9nd");
}

TEST_F(JobLogsTest, TheTailIsTheEndOfAll) {
  auto log = writer();
  log.append(sandbox::kStdout, "one\ntwo\nthree\n", kStartedUs + 1);
  openKept(2);
  EXPECT_THAT(rest(), ElementsAre("two", "three"));
  openKept(3);
  EXPECT_THAT(rest(), ElementsAre("one", "two", "three"));
  openKept(4);
  EXPECT_THAT(rest(), ElementsAre(StartsWith("====="), "one", "two", "three"));
  openKept(0);
  EXPECT_THAT(rest(), IsEmpty());
  log.append(sandbox::kStdout, "four\n", kStartedUs + 9);
  EXPECT_THAT(rest(), ElementsAre("four"));
}

TEST_F(JobLogsTest, GoesOnWhenTheFolderMoves) {
  auto log = writer();
  log.append(sandbox::kStdout, "one\n", kStartedUs + 1);
  openKept();
  EXPECT_THAT(rest(), SizeIs(2));
  fs::rename(folder(), folder("later"));
  log.append(sandbox::kStdout, "two\n", kStartedUs + 2);
  EXPECT_TRUE(changed(1000));
  EXPECT_THAT(rest(), ElementsAre("two"));
  openKept();
  EXPECT_THAT(rest(), ElementsAre(StartsWith("====="), "one", "two"));
}

TEST_F(JobLogsTest, TellsOfMoreAndOfTheEnd) {
  openKept();
  EXPECT_THAT(rest(), SizeIs(1));
  EXPECT_FALSE(changed(10));
  auto log = writer();
  log.append(sandbox::kStdout, "late\n", kStartedUs + 1);
  EXPECT_TRUE(changed(5000));
  EXPECT_THAT(rest(), ElementsAre("late"));
  life_->quiet = true;
  EXPECT_TRUE(changed(5000));
  EXPECT_FALSE(next());
}

class HostLogTest : public JobLogsTest {
 protected:
  void say(const std::string& text) { std::ofstream(file_, std::ios::app) << text; }
  void openHost(std::optional<uint64_t> tail = {}) { open(hostLines(file_), tail); }
  static std::string line(const char* time, const char* message) {
    return std::string(R"({"time":")") + time + R"(","level":"info","message":")" + message +
           "\"}\n";
  }

  const std::string file_ = dir_.path() / "host.log";
};

TEST_F(HostLogTest, LinesHaveTheTimesTheySay) {
  openHost();
  EXPECT_THAT(rest(), SizeIs(1)) << "there is no file yet";
  say(line("2023-11-14T22:13:21.500Z", "listening") + "not JSON \xff\nunfinished");
  const auto first = next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->timeUs, kStartedUs + 1'500'000);
  EXPECT_THAT(first->text, HasSubstr("listening"));
  EXPECT_THAT(rest(), ElementsAre("not JSON \xef\xbf\xbd"));
  say(" now\n");
  EXPECT_THAT(rest(), ElementsAre("unfinished now"));
}

TEST_F(HostLogTest, AFileThatIsCutBeginsAnew) {
  say("one\ntwo\n");
  openHost();
  EXPECT_THAT(rest(), SizeIs(3));
  fs::resize_file(file_, 0);
  say("x\n");
  EXPECT_THAT(rest(), ElementsAre("x"));
}

TEST_F(HostLogTest, TheTailIsTheEndOfAll) {
  say("one\ntwo\nthree\n");
  openHost(1);
  EXPECT_THAT(rest(), ElementsAre("three"));
  openHost(4);
  EXPECT_THAT(rest(), ElementsAre(StartsWith("====="), "one", "two", "three"));
}

TEST_F(HostLogTest, ALineWithoutEndIsCut) {
  say(std::string(200 << 10, 'x') + "\n");
  openHost();
  (void)next();
  EXPECT_THAT(rest(), Each(SizeIs(::testing::Le(64U << 10))));
}

}  // namespace
}  // namespace cay::engine
