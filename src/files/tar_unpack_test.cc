#include "files/tar_unpack.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/tar_fixture.h"
#include "files/place_fixture.h"
#include "files/tar_pack.h"

namespace cay::files {
namespace {

class TarUnpackTest : public PlaceTest {
 protected:
  Result<UnpackCounts> unpack(std::string_view archive, std::string_view path = "/tmp/in") {
    CAY_ASSIGN(const auto unpack, TarUnpack::open(place_, path));
    CAY_TRY(unpack->write(archive));
    return unpack->finish();
  }
  std::string pack(std::string_view path, size_t step = 1000) {
    const auto pack = must(TarPack::open(place_, path));
    std::string archive;
    std::string buffer(step, '\0');
    for (;;) {
      const size_t got = must(pack->read(buffer));
      archive.append(buffer, 0, got);
      if (got < step) return archive;
    }
  }

  const fs::path in_ = root_ / "tmp/in";
};

TEST_F(TarUnpackTest, MakesWhatTheArchiveHolds) {
  const auto counts = must(unpack(TarBuilder()
                                      .dir("./")
                                      .dir("./d")
                                      .file("./d/f", "content")
                                      .file("no/parents/given", "x")
                                      .symlink("l", "/somewhere/else")
                                      .hardLink("h", "d/f")
                                      .header({.name = "suid", .mode = 06755})
                                      .header({.name = "fifo", .type = '6'})
                                      .header({.name = "dev", .type = '3'})
                                      .done()));
  EXPECT_EQ(counts.files, 4U);
  EXPECT_EQ(counts.dirs, 1U);
  EXPECT_EQ(counts.symlinks, 1U);
  EXPECT_EQ(counts.skipped, 2U);
  EXPECT_EQ(counts.bytes, 8U);
  EXPECT_EQ(get(in_ / "d/f"), "content");
  EXPECT_EQ(get(in_ / "no/parents/given"), "x");
  EXPECT_EQ(fs::read_symlink(in_ / "l"), "/somewhere/else");
  EXPECT_EQ(fs::hard_link_count(in_ / "d/f"), 2U);
  EXPECT_EQ(modeOf(in_ / "d/f"), 0644U);
  EXPECT_EQ(modeOf(in_ / "suid"), 0755U);
  struct stat stat{};
  ASSERT_EQ(::lstat((in_ / "d/f").c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mtim.tv_sec, 1'700'000'000);
  EXPECT_FALSE(fs::exists(in_ / "fifo"));
}

TEST_F(TarUnpackTest, NoArchiveWritesOutside) {
  fs::create_directory(in_);
  fs::create_symlink(outside_, in_ / "was-there");
  put(root_ / "tmp/neighbour", "mine");
  const std::string up = "../../../" + outside_.filename().string() + "/planted";
  const std::string deep = "a/b/../../../../planted";
  const struct {
    const char* what;
    std::string archive;
  } cases[] = {
      {"..", TarBuilder().file("../neighbour", "x").done()},
      {"many ..", TarBuilder().file(up, "x").done()},
      {".. in the middle", TarBuilder().file(deep, "x").done()},
      {".. at the end", TarBuilder().dir("a/..").done()},
      {"absolute", TarBuilder().file((outside_ / "planted").string(), "x").done()},
      {"absolute dir", TarBuilder().dir("/planted").done()},
      {"through a link of the archive",
       TarBuilder().symlink("l", outside_.string()).file("l/planted", "x").done()},
      {"through a relative link",
       TarBuilder().symlink("l", "../..").file("l/tmp/neighbour", "x").done()},
      {"through two links",
       TarBuilder().symlink("l", ".").symlink("l2", "l/..").file("l2/neighbour", "x").done()},
      {"a directory through a link", TarBuilder().symlink("l", "..").dir("l/planted").done()},
      {"a directory over a link",
       TarBuilder().symlink("l", "..").dir("l").file("l/neighbour", "x").done()},
      {"through a link that was there", TarBuilder().file("was-there/planted", "x").done()},
      {"a hard link to above", TarBuilder().hardLink("h", "../neighbour").done()},
      {"a hard link to an absolute name",
       TarBuilder().hardLink("h", (outside_ / "secret").string()).done()},
      {"a hard link through a link",
       TarBuilder().symlink("l", outside_.string()).hardLink("h", "l/secret").done()},
      {"pax path",
       TarBuilder().meta('x', TarBuilder::pax("path", "../neighbour")).file("f", "x").done()},
      {"long name", TarBuilder().meta('L', "/planted").file("f", "x").done()},
      {"no name", TarBuilder().file("", "x").done()},
      {"only dots", TarBuilder().file("././.", "x").done()},
  };
  for (const auto& test : cases) {
    const auto result = unpack(test.archive);
    ASSERT_FALSE(result) << test.what;
    EXPECT_TRUE(result.error().code == Code::kInvalid || result.error().code == Code::kConflict)
        << test.what << ": " << result.error().message;
    EXPECT_EQ(get(root_ / "tmp/neighbour"), "mine") << test.what;
    EXPECT_EQ(fs::hard_link_count(root_ / "tmp/neighbour"), 1U) << test.what;
    EXPECT_EQ(entriesIn(outside_), 1U) << test.what;
    EXPECT_FALSE(fs::exists(root_ / "planted")) << test.what;
  }
}

TEST_F(TarUnpackTest, ALinkInTheWayIsReplacedNotWrittenThrough) {
  const std::string secret = (outside_ / "secret").string();
  must(unpack(TarBuilder().symlink("f", secret).file("f", "plain").done()));
  EXPECT_EQ(get(in_ / "f"), "plain");
  EXPECT_FALSE(fs::is_symlink(in_ / "f"));
  fs::create_hard_link(outside_ / "secret", in_ / "h");
  must(unpack(TarBuilder().file("h", "plain").done()));
  EXPECT_EQ(get(outside_ / "secret"), "the secret");
}

TEST_F(TarUnpackTest, ADirectoryInTheWayIsAConflict) {
  fs::create_directories(in_ / "d");
  EXPECT_EQ(unpack(TarBuilder().file("d", "x").done()).error().code, Code::kConflict);
  put(in_ / "f", "");
  EXPECT_EQ(unpack(TarBuilder().dir("f").done()).error().code, Code::kConflict);
  EXPECT_EQ(unpack("", "/tmp/in/f").error().code, Code::kConflict);
}

TEST_F(TarUnpackTest, AFileThatWasCutOffDoesNotStay) {
  const std::string archive =
      TarBuilder().file("whole", "w").file("half", std::string(5000, 'h')).done();
  const auto result = unpack(std::string_view(archive).substr(0, 3000));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kInvalid);
  EXPECT_EQ(get(in_ / "whole"), "w");
  EXPECT_FALSE(fs::exists(in_ / "half"));
}

TEST_F(TarUnpackTest, WhatWasPackedComesBackTheSame) {
  const fs::path from = root_ / "tmp/from";
  fs::create_directories(from / "d/e");
  put(from / "d/e/f", std::string(100'000, 'x'));
  put(from / "d" / std::string(200, 'n'), "long name");
  put(from / "bytes\xFF", "not UTF-8");
  put(from / "d" / (std::string(150, 'n') + "\xFF"), "long and not UTF-8");
  put(from / "empty", "");
  fs::permissions(from / "empty", fs::perms(0600));
  fs::create_symlink(std::string(150, 't'), from / "link");
  ASSERT_EQ(::mkfifo((from / "fifo").c_str(), 0600), 0);
  const std::string archive = pack("/tmp/from");
  EXPECT_EQ(archive, pack("/tmp/from", 512));
  EXPECT_EQ(archive, pack("/tmp/from", 1 << 20));
  const auto counts = must(unpack(archive));
  EXPECT_EQ(counts.files, 5U);
  EXPECT_EQ(counts.dirs, 2U);
  EXPECT_EQ(get(in_ / "d/e/f"), std::string(100'000, 'x'));
  EXPECT_EQ(get(in_ / "d" / std::string(200, 'n')), "long name");
  EXPECT_EQ(get(in_ / "bytes\xFF"), "not UTF-8");
  EXPECT_EQ(get(in_ / "d" / (std::string(150, 'n') + "\xFF")), "long and not UTF-8");
  EXPECT_EQ(modeOf(in_ / "empty"), 0600U);
  EXPECT_EQ(fs::read_symlink(in_ / "link"), std::string(150, 't'));
  EXPECT_FALSE(fs::exists(in_ / "fifo"));
  EXPECT_EQ(fs::last_write_time(from / "empty") - fs::last_write_time(in_ / "empty") <
                std::chrono::seconds(1),
            true);
}

TEST_F(TarUnpackTest, PackingSaysWhatIsWrong) {
  put(root_ / "tmp/f", "");
  EXPECT_EQ(TarPack::open(place_, "/tmp/x").error().code, Code::kNotFound);
  EXPECT_EQ(TarPack::open(place_, "/tmp/f").error().code, Code::kConflict);
  EXPECT_EQ(pack("/home"), std::string(1024, '\0'));
}

TEST_F(TarUnpackTest, AFileThatShrinksWhileItIsPackedIsAnError) {
  fs::create_directory(root_ / "tmp/from");
  put(root_ / "tmp/from/f", std::string(10'000, 'x'));
  const auto pack = must(TarPack::open(place_, "/tmp/from"));
  std::string buffer(1024, '\0');
  ASSERT_EQ(must(pack->read(buffer)), 1024U);
  fs::resize_file(root_ / "tmp/from/f", 2000);
  std::string rest(100'000, '\0');
  EXPECT_FALSE(pack->read(rest));
}

TEST_F(TarUnpackTest, PackingNeverFollowsLinks) {
  fs::create_directory(root_ / "tmp/from");
  fs::create_symlink(outside_, root_ / "tmp/from/out");
  fs::create_symlink("/tmp", root_ / "tmp/from/in");
  const std::string archive = pack("/tmp/from");
  EXPECT_EQ(archive.find("the secret"), std::string::npos);
  EXPECT_EQ(archive.size(), 4 * kTarBlock);
}

}  // namespace
}  // namespace cay::files
