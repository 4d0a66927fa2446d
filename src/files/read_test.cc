#include "files/read.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include "files/place_fixture.h"
#include "sys/io.h"

namespace cay::files {
namespace {

class ReadTest : public PlaceTest {
 protected:
  // All bytes of a range, however they are to be sent.
  std::string read(std::string_view path, const ReadRange& range = {}) {
    return drain(must(openForReading(*place_, path, range)));
  }
  static std::string drain(Reading reading) {
    std::string bytes = reading.head;
    std::string buffer(100'000, '\0');
    while (reading.unsized || reading.length > 0) {
      const size_t got = must(readMore(reading, buffer));
      if (got == 0) break;
      bytes.append(buffer, 0, got);
    }
    return bytes;
  }
  static std::string pattern(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
    return bytes;
  }
};

TEST_F(ReadTest, RangesAreExact) {
  const std::string content = pattern(300'000);
  put(root_ / "tmp/f", content);
  for (const uint64_t offset : {0UL, 1UL, 65'536UL, 299'999UL, 300'000UL, 400'000UL, ~0UL}) {
    for (const uint64_t length : {0UL, 1UL, 65'536UL, 65'537UL, 300'000UL, ~0UL}) {
      const std::string expected =
          offset < content.size() ? content.substr(offset, length) : std::string();
      EXPECT_EQ(read("/tmp/f", {.offset = offset, .length = length}), expected)
          << offset << " " << length;
    }
  }
  EXPECT_EQ(read("/tmp/f"), content);
  EXPECT_EQ(read("/tmp/f", {.offset = 10, .length = {}}), content.substr(10));
}

TEST_F(ReadTest, BigRangesAreLeftToSendfile) {
  put(root_ / "tmp/f", pattern(300'000));
  const Reading reading =
      must(openForReading(*place_, "/tmp/f", {.offset = 1000, .length = 200'000}));
  EXPECT_TRUE(reading.head.empty());
  EXPECT_EQ(reading.offset, 1000U);
  EXPECT_EQ(reading.length, 200'000U);
  EXPECT_FALSE(reading.unsized);
}

TEST_F(ReadTest, FilesThatSayTheyAreEmptyAreReadToTheirEnd) {
  const auto whole = must(Place::create(openRoot("/"), "/"));
  const auto status = drain(must(openForReading(*whole, "/proc/self/status", {})));
  EXPECT_TRUE(status.starts_with("Name:")) << status;
  // Much more than is read at once: several hundred bytes for each of many mappings.
  constexpr size_t kPages = 1000;
  void* const pages = ::mmap(nullptr, kPages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  for (size_t i = 0; i < kPages; i += 2) {
    ASSERT_EQ(::mprotect(static_cast<char*>(pages) + i * 4096, 4096, PROT_NONE), 0);
  }
  const std::string big = drain(must(openForReading(*whole, "/proc/self/smaps", {})));
  ::munmap(pages, kPages * 4096);
  EXPECT_GT(big.size(), 300'000U);
  EXPECT_EQ(big.back(), '\n');
  // Clients that were told the size 0 ask for no bytes and want none.
  EXPECT_EQ(must(openForReading(*whole, "/proc/self/status", {.offset = 0, .length = 0})).head, "");
  EXPECT_EQ(drain(must(openForReading(*whole, "/proc/self/status", {.offset = 0, .length = 5}))),
            "Name:");
}

TEST_F(ReadTest, FilesThatSayTheyAreLongerThanTheyAre) {
  const auto whole = must(Place::create(openRoot("/"), "/"));
  constexpr const char* kFile = "/sys/devices/system/cpu/online";
  if (!fs::exists(kFile)) GTEST_SKIP() << "/sys is not mounted";
  const Reading reading = must(openForReading(*whole, kFile, {}));
  EXPECT_FALSE(reading.head.empty());
  EXPECT_LT(reading.head.size(), 4096U);
  EXPECT_EQ(reading.length, 0U);
}

TEST_F(ReadTest, WhatIsNoFileIsAConflictAtOnce) {
  ASSERT_EQ(::mkfifo((root_ / "tmp/fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", root_ / "tmp/link");
  for (const char* path : {"/tmp/fifo", "/tmp/link", "/tmp", "/"}) {
    const auto result = openForReading(*place_, path, {});
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().code, Code::kConflict) << result.error().message;
  }
  const auto whole = must(Place::create(openRoot("/"), "/"));
  EXPECT_EQ(openForReading(*whole, "/dev/zero", {}).error().code, Code::kConflict);
  EXPECT_EQ(openForReading(*place_, "/tmp/x", {}).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace cay::files
