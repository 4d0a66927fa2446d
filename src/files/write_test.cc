#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <thread>

#include "files/place_fixture.h"
#include "files/range_write.h"
#include "files/temp_file.h"
#include "files/whole_write.h"

namespace cay::files {
namespace {

class WriteTest : public PlaceTest {
 protected:
  Result<> write(std::string_view path, std::string_view content,
                 std::optional<mode_t> mode = std::nullopt) {
    CAY_ASSIGN(const auto upload, replaceFile(place_, path, mode));
    CAY_TRY(upload->write(content.substr(0, content.size() / 2)));
    CAY_TRY(upload->write(content.substr(content.size() / 2)));
    return upload->commit();
  }
  Result<> writeRange(std::string_view path, std::string_view content,
                      const RangeOptions& options) {
    CAY_ASSIGN(const auto upload, RangeUpload::open(place_, table_, path, options));
    CAY_TRY(upload->write(content));
    upload->complete();
    return upload->commit();
  }

  static RangeOptions from(uint64_t offset) {
    RangeOptions options;
    options.offset = offset;
    return options;
  }

  std::shared_ptr<BurstTable> table_ = std::make_shared<BurstTable>();
};

TEST_F(WriteTest, MakesTheFileAndItsParents) {
  must(write("/tmp/a/b/c", "content"));
  EXPECT_EQ(get(root_ / "tmp/a/b/c"), "content");
  must(write("relative", ""));
  EXPECT_EQ(get(root_ / "home/relative"), "");
  const mode_t mask = ::umask(022);
  must(write("/tmp/masked", "x"));
  ::umask(mask);
  EXPECT_EQ(modeOf(root_ / "tmp/masked"), 0644U);
  must(write("/tmp/a/script", "x", 0755));
  EXPECT_EQ(modeOf(root_ / "tmp/a/script"), 0755U);
}

TEST_F(WriteTest, KeepsModeAndOwnerOfWhatItReplaces) {
  put(root_ / "tmp/f", "old");
  fs::permissions(root_ / "tmp/f", fs::perms(0640));
  if (::geteuid() == 0) ASSERT_EQ(::chown((root_ / "tmp/f").c_str(), 123, 456), 0);
  must(write("/tmp/f", "new"));
  EXPECT_EQ(get(root_ / "tmp/f"), "new");
  EXPECT_EQ(modeOf(root_ / "tmp/f"), 0640U);
  struct stat stat{};
  ASSERT_EQ(::stat((root_ / "tmp/f").c_str(), &stat), 0);
  if (::geteuid() == 0) {
    EXPECT_EQ(stat.st_uid, 123U);
    EXPECT_EQ(stat.st_gid, 456U);
  }
  must(write("/tmp/f", "newer", 0600));
  EXPECT_EQ(modeOf(root_ / "tmp/f"), 0600U);
}

TEST_F(WriteTest, IsSeenOnlyWhenItIsComplete) {
  put(root_ / "tmp/f", "old");
  const auto upload = must(replaceFile(place_, "/tmp/f", std::nullopt));
  must(upload->write("new"));
  EXPECT_EQ(get(root_ / "tmp/f"), "old");
  must(upload->commit());
  EXPECT_EQ(get(root_ / "tmp/f"), "new");
  EXPECT_EQ(entriesIn(root_ / "tmp"), 1U);
}

TEST_F(WriteTest, AnUploadThatIsGivenUpLeavesNothingBehind) {
  put(root_ / "tmp/f", "old");
  must(must(replaceFile(place_, "/tmp/f", std::nullopt))->write("half"));
  must(must(replaceFile(place_, "/tmp/fresh", std::nullopt))->write("half"));
  EXPECT_EQ(get(root_ / "tmp/f"), "old");
  EXPECT_EQ(entriesIn(root_ / "tmp"), 1U);
}

TEST_F(WriteTest, GoesThroughLinksInsideTheRoot) {
  put(root_ / "tmp/target", "old");
  fs::create_symlink("/tmp/target", root_ / "home/link");
  fs::create_symlink("link", root_ / "home/link2");
  must(write("link2", "new"));
  EXPECT_EQ(get(root_ / "tmp/target"), "new");
  EXPECT_TRUE(fs::is_symlink(root_ / "home/link"));
  EXPECT_TRUE(fs::is_symlink(root_ / "home/link2"));
  fs::create_symlink("../tmp/made", root_ / "home/dangling");
  must(write("dangling", "made"));
  EXPECT_EQ(get(root_ / "tmp/made"), "made");
}

TEST_F(WriteTest, NeverLeavesTheRoot) {
  fs::create_symlink(outside_ / "secret", root_ / "home/absolute");
  fs::create_symlink("../../outside/secret", root_ / "home/relative");
  fs::create_symlink("../../outside", root_ / "home/dir");
  for (const char* path : {"absolute", "relative", "dir/secret", "dir/new", "/../outside/new"}) {
    // What is made is made inside the root, if anything is.
    (void)write(path, "overwritten");
    (void)writeRange(path, "overwritten", {});
  }
  EXPECT_EQ(get(outside_ / "secret"), "the secret");
  EXPECT_EQ(entriesIn(outside_), 1U);
}

TEST_F(WriteTest, WhatIsNoFileIsAConflict) {
  ASSERT_EQ(::mkfifo((root_ / "tmp/fifo").c_str(), 0600), 0);
  put(root_ / "tmp/file", "");
  for (const char* path : {"/tmp/fifo", "/tmp", "/", "/tmp/file/below"}) {
    for (const auto& result : {write(path, "x"), writeRange(path, "x", {})}) {
      ASSERT_FALSE(result) << path;
      EXPECT_EQ(result.error().code, Code::kConflict) << result.error().message;
    }
  }
  EXPECT_EQ(write("/tmp/new/", "x").error().code, Code::kInvalid);
}

TEST_F(WriteTest, AFileThatCannotBeReplacedIsWrittenInPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  put(root_ / "tmp/mounted", "old and long");
  put(outside_ / "source", "old and long");
  if (::mount((outside_ / "source").c_str(), (root_ / "tmp/mounted").c_str(), nullptr, MS_BIND,
              nullptr) != 0) {
    GTEST_SKIP() << "no mounts here";
  }
  const auto result = write("/tmp/mounted", "new");
  const std::string content = get(root_ / "tmp/mounted");
  ASSERT_EQ(::umount((root_ / "tmp/mounted").c_str()), 0);
  must(result);
  EXPECT_EQ(content, "new");
  EXPECT_EQ(get(outside_ / "source"), "new");
  EXPECT_EQ(entriesIn(root_ / "tmp"), 1U);
}

TEST_F(WriteTest, AFileOfTheKernelIsWrittenInPlace) {
  const auto whole = must(Place::create(openRoot("/"), "/"));
  const auto upload = must(replaceFile(whole, "/proc/self/comm", std::nullopt));
  must(upload->write("renamed"));
  must(upload->commit());
  EXPECT_EQ(get("/proc/self/comm"), "renamed\n");
}

// Makes O_TMPFILE fail for the calling thread as on file systems that do not have it.
bool forbidUnnamedFiles() {
  constexpr unsigned kFlags = offsetof(seccomp_data, args[2]);  // the low half, on little endian
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(WriteTest, WithoutUnnamedFilesAHiddenNameDoes) {
  bool tried = false;
  std::thread filtered([&] {  // the filter stays with the thread
    ASSERT_TRUE(forbidUnnamedFiles());
    must(write("/tmp/f", "first"));
    must(write("/tmp/f", "second"));
    {
      const auto upload = must(replaceFile(place_, "/tmp/f", std::nullopt));
      must(upload->write("given up"));
      EXPECT_EQ(entriesIn(root_ / "tmp"), 2U);
      for (const auto& entry : fs::directory_iterator(root_ / "tmp")) {
        const std::string name = entry.path().filename().string();
        EXPECT_TRUE(name == "f" || isTempName(name)) << name;
      }
    }
    tried = true;
  });
  filtered.join();
  EXPECT_TRUE(tried);
  EXPECT_EQ(get(root_ / "tmp/f"), "second");
  EXPECT_EQ(entriesIn(root_ / "tmp"), 1U);
  EXPECT_FALSE(isTempName("cay-upload-0123456789abcdef"));
  EXPECT_FALSE(isTempName(".cay-upload-x"));
}

TEST_F(WriteTest, RangesAreWrittenInPlaceInAnyOrder) {
  must(writeRange("/tmp/d/f", "cc", {.offset = 4, .truncateTo = 6, .mode = 0750}));
  must(writeRange("/tmp/d/f", "aa", from(0)));
  must(writeRange("/tmp/d/f", "bb", from(2)));
  EXPECT_EQ(get(root_ / "tmp/d/f"), "aabbcc");
  EXPECT_EQ(modeOf(root_ / "tmp/d/f"), 0750U);
}

TEST_F(WriteTest, TruncateToSetsTheSizeThereAndThen) {
  put(root_ / "tmp/f", "0123456789");
  must(writeRange("/tmp/f", "xx", {.offset = 2, .truncateTo = 5, .mode = {}}));
  EXPECT_EQ(get(root_ / "tmp/f"), "01xx4");
  must(writeRange("/tmp/f", "", {.offset = 0, .truncateTo = 8, .mode = {}}));
  EXPECT_EQ(get(root_ / "tmp/f"), std::string("01xx4\0\0\0", 8));
  // From now on this file says its sizes itself.
  must(writeRange("/tmp/f", "y", {}));
  EXPECT_EQ(get(root_ / "tmp/f").size(), 8U);
}

TEST_F(WriteTest, ABurstWithoutASizeCutsTheOldTail) {
  put(root_ / "tmp/f", std::string(5000, 'o'));
  auto first = must(RangeUpload::open(place_, table_, "/tmp/f", from(1000)));
  auto second = must(RangeUpload::open(place_, table_, "/tmp/f", from(0)));
  for (const auto& upload : {&first, &second}) {
    must((*upload)->write(std::string(1000, 'n')));
    (*upload)->complete();
    must((*upload)->commit());
  }
  EXPECT_EQ(get(root_ / "tmp/f"), std::string(2000, 'n'));
}

TEST_F(WriteTest, ARangeThatIsGivenUpCutsNothing) {
  put(root_ / "tmp/f", std::string(5000, 'o'));
  {
    auto given = must(RangeUpload::open(place_, table_, "/tmp/f", from(1000)));
    must(given->write("half"));
  }
  must(writeRange("/tmp/f", "n", from(0)));
  EXPECT_EQ(get(root_ / "tmp/f").size(), 5000U);
}

TEST_F(WriteTest, AbsurdOffsetsAreInvalid) {
  EXPECT_EQ(writeRange("/tmp/f", "x", from(~0UL)).error().code, Code::kInvalid);
  EXPECT_EQ(writeRange("/tmp/f", "xx", from(INT64_MAX)).error().code, Code::kInvalid);
  EXPECT_EQ(writeRange("/tmp/f", "x", {.offset = 0, .truncateTo = ~0UL, .mode = {}}).error().code,
            Code::kInvalid);
}

TEST_F(WriteTest, ParallelRangesOfABigFileAllArrive) {
  constexpr size_t kRanges = 16;
  constexpr size_t kLength = 65'536;
  put(root_ / "tmp/f", std::string(3 * kRanges * kLength, 'o'));
  std::vector<std::thread> clients;
  clients.reserve(kRanges);
  for (size_t i = 0; i < kRanges; ++i) {
    clients.emplace_back([this, i] {
      const std::string piece(kLength, static_cast<char>('a' + i));
      must(writeRange("/tmp/f", piece, from(i * kLength)));
    });
  }
  for (std::thread& client : clients) client.join();
  const std::string content = get(root_ / "tmp/f");
  for (size_t i = 0; i < kRanges; ++i) {
    EXPECT_EQ(content.substr(i * kLength, kLength),
              std::string(kLength, static_cast<char>('a' + i)));
  }
}

}  // namespace
}  // namespace cay::files
