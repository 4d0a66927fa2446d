#include "sandbox/line_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "sandbox/paths.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow = 1'700'000'000'000'000;
constexpr LineLogWriter::Shape kSmall{.headBytes = 400, .tailBytes = 600, .segmentBytes = 200};

struct Told {
  int64_t timeUs;
  StreamId stream;
  bool continues;
  uint64_t dropped;
  std::string text;
};

class LineLog : public ::testing::Test {
 protected:
  LineLog() : folder_(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  LineLogWriter writer(const LineLogWriter::Shape& shape = {}) {
    return LineLogWriter::open(folder_.get(), kLinesFolder, shape).value();
  }
  LineLogReader reader() { return LineLogReader::open(folder_.get(), kLinesFolder).value(); }

  enum class Times { kRise, kAny };
  static std::vector<Told> rest(LineLogReader& reader, Times times = Times::kRise) {
    std::vector<Told> out;
    while (true) {
      const auto line = reader.next();
      EXPECT_TRUE(line) << line.error().message;
      if (!line || !*line) return out;
      const LogLine& one = **line;
      if (!out.empty() && times == Times::kRise) {
        EXPECT_GT(one.timeUs, out.back().timeUs) << one.text;
      }
      out.push_back({one.timeUs, one.stream, one.continues, one.dropped, std::string(one.text)});
    }
  }
  std::vector<Told> all(Times times = Times::kRise) {
    LineLogReader from = reader();
    return rest(from, times);
  }
  static std::vector<std::string> texts(const std::vector<Told>& lines) {
    std::vector<std::string> out;
    for (const Told& line : lines) {
      out.push_back(line.dropped > 0 ? "<" + std::to_string(line.dropped) + ">" : line.text);
    }
    return out;
  }
  [[nodiscard]] fs::path lines() const { return dir_.path() / kLinesFolder; }
  [[nodiscard]] uint64_t bytesOnDisk() const {
    uint64_t sum = 0;
    for (const auto& file : fs::directory_iterator(lines())) sum += file.file_size();
    return sum;
  }
  [[nodiscard]] static uint64_t outputIn(const std::vector<Told>& lines) {
    uint64_t sum = 0;
    for (const Told& line : lines) {
      sum += line.dropped > 0 ? line.dropped : line.text.size() + (line.continues ? 0 : 1);
    }
    return sum;
  }

  testing::TempDir dir_;
  Fd folder_;
};

using Texts = std::vector<std::string>;

TEST_F(LineLog, LinesOfBothStreamsComeInTheOrderInWhichTheyEnded) {
  LineLogWriter log = writer();
  log.append(kStdout, "one\ntw", kNow);
  log.append(kStderr, "oops\n\n", kNow + 1000);
  log.append(kStdout, "o\n", kNow + 2000);
  const auto lines = all();
  EXPECT_EQ(texts(lines), (Texts{"one", "oops", "", "two"}));
  EXPECT_EQ(lines[1].stream, kStderr);
  EXPECT_EQ(lines[3].stream, kStdout);
  EXPECT_EQ(lines[0].timeUs, kNow);
  EXPECT_EQ(lines[2].timeUs, kNow + 1001) << "unique, as near to the clock as can be";
  EXPECT_EQ(lines[3].timeUs, kNow + 2000);
}

TEST_F(LineLog, AnUnfinishedLineWaitsAndThenGoesOn) {
  LineLogWriter log = writer();
  log.append(kStdout, "Password: ", kNow);
  EXPECT_TRUE(all().empty());
  EXPECT_TRUE(log.waiting());
  log.flush(kNow);
  EXPECT_FALSE(log.waiting());
  log.append(kStdout, "\nwelcome\n", kNow);
  const auto lines = all();
  EXPECT_EQ(texts(lines), (Texts{"Password: ", "", "welcome"}));
  EXPECT_TRUE(lines[0].continues);
  EXPECT_FALSE(lines[1].continues);
}

TEST_F(LineLog, LongLinesAreCutAndBytesStayBytes) {
  LineLogWriter log = writer();
  const std::string exact(kMaxLineBytes, 'a');
  log.append(kStdout, exact + "\n", kNow);
  const std::string longer(2 * kMaxLineBytes + 10, 'b');
  for (size_t at = 0; at < longer.size(); at += 1000) {
    log.append(kStdout, std::string_view(longer).substr(at, 1000), kNow);
  }
  log.append(kStdout, "\n", kNow);
  const std::string odd("\0\xff\xfe\r\x1b[0m", 8);
  log.append(kStderr, odd + "\n", kNow);
  const auto lines = all();
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].text, exact);
  EXPECT_FALSE(lines[0].continues);
  EXPECT_TRUE(lines[1].continues);
  EXPECT_TRUE(lines[2].continues);
  EXPECT_FALSE(lines[3].continues);
  EXPECT_EQ(lines[1].text + lines[2].text + lines[3].text, longer);
  EXPECT_EQ(lines[4].text, odd);
}

TEST_F(LineLog, AClockThatGoesBackDoesNotTakeTheTimesAlong) {
  {
    LineLogWriter log = writer();
    log.append(kStdout, "a\n", kNow);
    log.append(kStdout, "b\n", kNow - 3'600'000'000);
    log.append(kStdout, "c\n", -5);
  }
  LineLogWriter log = writer();  // and over a restart
  log.append(kStdout, "d\n", kNow - 10);
  log.append(kStdout, "e\n", kNow + 10);
  const auto lines = all();
  EXPECT_EQ(texts(lines), (Texts{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(lines[3].timeUs, kNow + 3);
  EXPECT_EQ(lines[4].timeUs, kNow + 10);
}

TEST_F(LineLog, TheHeadIsKeptForEverAndOfTheRestTheNewest) {
  LineLogWriter log = writer(kSmall);
  uint64_t given = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    log.append(i % 2 == 0 ? kStdout : kStderr, line, kNow + i);
    given += line.size();
    const auto now = all();
    ASSERT_EQ(now.front().text, "line 0") << i;
    ASSERT_EQ(now.back().text + "\n", line);
    ASSERT_EQ(outputIn(now), given) << "what is told and what is told to be gone make the whole";
    ASSERT_LE(bytesOnDisk(), 1000 + 5 * 64) << i;
  }
  const auto lines = all();
  size_t gaps = 0;
  for (const Told& line : lines) gaps += line.dropped > 0 ? 1 : 0;
  EXPECT_EQ(gaps, 1U);
  EXPECT_GT(lines.size(), 30U);
}

TEST_F(LineLog, ManyEmptyLinesAreBoundedAndToldToo) {
  LineLogWriter log = writer(kSmall);
  log.append(kStdout, std::string(10'000, '\n'), kNow);
  EXPECT_EQ(outputIn(all()), 10'000U);
  EXPECT_LE(bytesOnDisk(), 1300U);
}

TEST_F(LineLog, AReaderFollowsOverRotationsAndIsToldWhatItMissed) {
  LineLogWriter log = writer(kSmall);
  LineLogReader follower = reader();
  LineLogReader slow = reader();
  std::vector<Told> followed;
  log.append(kStdout, "first\n", kNow);
  EXPECT_EQ(texts(rest(slow)), Texts{"first"});
  for (int i = 0; i < 300; ++i) {
    log.append(kStdout, std::to_string(i) + "\n", kNow);
    for (Told& one : rest(follower)) followed.push_back(std::move(one));
  }
  ASSERT_EQ(followed.size(), 301U) << "whoever keeps up misses nothing";
  EXPECT_EQ(followed.back().text, "299");
  const auto late = rest(slow);
  EXPECT_EQ(late.back().text, "299");
  EXPECT_EQ(outputIn(late), outputIn(followed) - 6);
}

TEST_F(LineLog, TheTailCanBeFound) {
  LineLogWriter log = writer(kSmall);
  for (int i = 0; i < 100; ++i) log.append(kStdout, std::to_string(i) + "\n", kNow);
  for (const uint64_t count : {0, 1, 2, 7, 20, 24}) {
    LineLogReader from = reader();
    ASSERT_TRUE(from.seekTail(count));
    const auto lines = rest(from);
    ASSERT_EQ(lines.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(lines[i].text, std::to_string(100 - count + i));
    }
    log.append(kStdout, "", kNow);
  }
  LineLogReader from = reader();
  ASSERT_TRUE(from.seekTail(100'000));
  EXPECT_EQ(texts(rest(from)), texts(all()));
}

// As if the machine had lost its power while the last segment was being written: whatever part of
// it there is, the reader gives whole records, and the next writer goes on behind them.
TEST_F(LineLog, AWriterGoesOnAfterACrashAtEveryByte) {
  Texts written;
  {
    LineLogWriter log = writer(kSmall);
    for (int i = 0; i < 20; ++i) {
      written.push_back("line " + std::to_string(i));
      log.append(kStdout, written.back() + "\n", kNow + i);
    }
  }
  const fs::path copy = dir_.path() / "copy";
  fs::copy(lines(), copy);
  fs::path last;
  for (int n = 0; fs::exists(copy / std::to_string(n)); ++n) last = std::to_string(n);
  ASSERT_NE(last, "0");
  for (uintmax_t length = 0; length <= fs::file_size(copy / last); ++length) {
    for (const bool zeros : {false, true}) {
      fs::remove_all(lines());
      fs::copy(copy, lines());
      fs::resize_file(lines() / last, length);
      if (zeros) fs::resize_file(lines() / last, fs::file_size(copy / last) + 40);
      const Texts before = texts(all());
      ASSERT_LE(before.size(), written.size());
      ASSERT_TRUE(std::equal(before.begin(), before.end(), written.begin())) << length;
      {
        LineLogWriter log = writer(kSmall);
        log.append(kStdout, "after\n", kNow);
      }
      Texts after = before;
      after.emplace_back("after");
      ASSERT_EQ(texts(all()), after) << length;
    }
  }
}

TEST_F(LineLog, ACrashBetweenANewSegmentAndTheEndOfAnOldOneLeavesNothingBehind) {
  {
    LineLogWriter log = writer(kSmall);
    for (int i = 0; i < 200; ++i) log.append(kStdout, std::to_string(i) + "\n", kNow);
  }
  const size_t before = texts(all()).size();
  fs::copy_file(lines() / "0", lines() / "3");  // one that should have gone
  (void)writer(kSmall);
  EXPECT_FALSE(fs::exists(lines() / "3"));
  EXPECT_EQ(texts(all()).size(), before);
}

TEST_F(LineLog, OnlyOneWritesAtATime) {
  const LineLogWriter log = writer();
  const auto second = LineLogWriter::open(folder_.get(), kLinesFolder, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
}

TEST_F(LineLog, WhatTheDiskDoesNotTakeIsCountedAndTold) {
  LineLogWriter log = writer();
  log.append(kStdout, "kept\n", kNow);
  LineLogReader follower = reader();
  EXPECT_EQ(texts(rest(follower)), Texts{"kept"});
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto limitTo = [&](rlim_t bytes) {
    rlimit limit = before;
    limit.rlim_cur = bytes;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  };
  limitTo(28 + 2 * 18 + 4 + 13 + 20);  // room for one more record and a part of another
  log.append(kStdout, "fits in still\ndoes not fit in any more, not at all by any means\n", kNow);
  log.append(kStderr, "nor does this\n", kNow);
  limitTo(before.rlim_cur);
  EXPECT_EQ(texts(rest(follower)), Texts{"fits in still"});
  log.append(kStdout, "again\n", kNow);
  EXPECT_EQ(texts(rest(follower)), (Texts{"<64>", "again"}));
  EXPECT_EQ(texts(all()), (Texts{"kept", "fits in still", "<64>", "again"}));

  limitTo(0);
  log.append(kStdout, "the last words\n", kNow);
  limitTo(before.rlim_cur);
  log.flush(kNow);
  EXPECT_EQ(texts(rest(follower)), Texts{"<15>"}) << "told although nothing came after it";
}

TEST_F(LineLog, WithoutRoomForANewSegmentNothingGrows) {
  LineLogWriter log = writer(kSmall);
  log.append(kStdout, std::string(150, 'a') + "\n", kNow);
  log.append(kStdout, std::string(150, 'a') + "\n", kNow);
  fs::create_directory(lines() / "1");  // in its way
  const uint64_t before = fs::file_size(lines() / "0");
  for (int i = 0; i < 50; ++i) log.append(kStdout, std::string(150, 'a') + "\n", kNow);
  EXPECT_EQ(fs::file_size(lines() / "0"), before);
  fs::remove(lines() / "1");
  log.append(kStdout, "again\n", kNow);
  EXPECT_EQ(outputIn(all()), 52U * 151 + 6);
}

// What lies in the folder may be anything: reading ends, and a writer goes on.
TEST_F(LineLog, RubbishIsNoHarm) {
  {
    LineLogWriter log = writer(kSmall);
    for (int i = 0; i < 60; ++i) log.append(kStdout, "line " + std::to_string(i) + "\n", kNow);
  }
  const fs::path copy = dir_.path() / "copy";
  fs::copy(lines(), copy);
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    fs::remove_all(lines());
    fs::copy(copy, lines());
    for (const auto& file : fs::directory_iterator(copy)) {
      std::fstream bytes(lines() / file.path().filename(),
                         std::ios::in | std::ios::out | std::ios::binary);
      for (unsigned hits = random() % 4; hits > 0; --hits) {
        bytes.seekp(static_cast<std::streamoff>(random() % file.file_size()));
        bytes.put(static_cast<char>(random()));
      }
    }
    LineLogReader tail = reader();
    ASSERT_TRUE(tail.seekTail(random() % 80));
    (void)rest(tail, Times::kAny);
    (void)all(Times::kAny);
    {
      LineLogWriter log = writer(kSmall);
      log.append(kStderr, "after\n", kNow);
    }
    const auto lines = all(Times::kAny);
    ASSERT_FALSE(lines.empty());
    ASSERT_EQ(lines.back().text, "after") << round;
  }
}

}  // namespace
}  // namespace cay::sandbox
