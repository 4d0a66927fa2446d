#include "base/tar_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/tar_fixture.h"
#include "base/tar_header.h"

namespace cay {
namespace {

struct Recorded : TarSink {
  std::vector<TarMember> members;
  std::vector<std::string> contents;
  size_t ended = 0;

  Result<> member(const TarMember& member) override {
    members.push_back(member);
    contents.emplace_back();
    return {};
  }
  Result<> data(std::string_view piece) override {
    contents.back().append(piece);
    return {};
  }
  Result<> memberEnd() override {
    ++ended;
    return {};
  }
};

// Reads `archive` in pieces of `step` bytes.
Result<> readAll(std::string_view archive, TarSink& sink, size_t step = 4096) {
  TarReader reader(sink);
  for (; !archive.empty(); archive.remove_prefix(std::min(step, archive.size()))) {
    CAY_TRY(reader.feed(archive.substr(0, step)));
  }
  return reader.finish();
}

TEST(TarReader, GivesMembersWhateverThePieces) {
  const std::string archive = TarBuilder()
                                  .dir("d/")
                                  .file("d/f", std::string(1000, 'x'))
                                  .file("empty", "")
                                  .symlink("l", "d/f")
                                  .hardLink("h", "d/f")
                                  .header({.name = "fifo", .type = '6'})
                                  .done();
  for (const size_t step : {1UL, 7UL, 512UL, 100'000UL}) {
    Recorded got;
    ASSERT_TRUE(readAll(archive, got, step));
    ASSERT_EQ(got.members.size(), 6U);
    EXPECT_EQ(got.ended, 6U);
    EXPECT_EQ(got.members[0].type, TarType::kDirectory);
    EXPECT_EQ(got.members[1].path, "d/f");
    EXPECT_EQ(got.members[1].mode, 0644U);
    EXPECT_EQ(got.members[1].mtime.tv_sec, 1'700'000'000);
    EXPECT_EQ(got.contents[1], std::string(1000, 'x'));
    EXPECT_EQ(got.members[3].linkPath, "d/f");
    EXPECT_EQ(got.members[4].type, TarType::kHardLink);
    EXPECT_EQ(got.members[5].type, TarType::kFifo);
  }
}

TEST(TarReader, KnowsLongNamesOfBothKinds) {
  const std::string name(300, 'n');
  const std::string target(200, 't');
  Recorded pax;
  ASSERT_TRUE(
      readAll(TarBuilder()
                  .meta('g', TarBuilder::pax("comment", "made by hand"))
                  .meta('x', TarBuilder::pax("path", name) + TarBuilder::pax("linkpath", target) +
                                 TarBuilder::pax("mtime", "1600000000.75"))
                  .symlink("short", "short")
                  .file("next", "")
                  .done(),
              pax));
  EXPECT_EQ(pax.members[0].path, name);
  EXPECT_EQ(pax.members[0].linkPath, target);
  EXPECT_EQ(pax.members[0].mtime.tv_sec, 1'600'000'000);
  EXPECT_EQ(pax.members[1].path, "next");
  Recorded gnu;
  ASSERT_TRUE(readAll(TarBuilder()
                          .meta('L', name + std::string(1, '\0'))
                          .meta('K', target + std::string(1, '\0'))
                          .symlink("short", "short")
                          .done(),
                      gnu));
  EXPECT_EQ(gnu.members[0].path, name);
  EXPECT_EQ(gnu.members[0].linkPath, target);
}

TEST(TarReader, TakesTheSizeOfAPaxRecord) {
  Recorded got;
  ASSERT_TRUE(readAll(TarBuilder()
                          .meta('x', TarBuilder::pax("size", "5"))
                          .header({.name = "f", .size = 0})
                          .content("12345")
                          .file("g", "g")
                          .done(),
                      got));
  EXPECT_EQ(got.contents[0], "12345");
  EXPECT_EQ(got.contents[1], "g");
}

TEST(TarReader, TellsOwnersAndAttributes) {
  const std::string nul("a\0b", 3);
  Recorded got;
  ASSERT_TRUE(readAll(TarBuilder()
                          .header({.name = "f", .uid = 1000, .gid = 2097151})
                          .meta('x', TarBuilder::pax("uid", "4000000000") +
                                         TarBuilder::pax("SCHILY.xattr.user.a", nul) +
                                         TarBuilder::pax("SCHILY.xattr.user.b", "x=y"))
                          .header({.name = "g", .uid = 5, .gid = 6})
                          .header({.name = "h", .type = '3'})
                          .meta('x', TarBuilder::pax("gid", "-1"))
                          .header({.name = "i"})
                          .meta('g', TarBuilder::pax("uid", "7"))
                          .header({.name = "j", .uid = 5})
                          .done(),
                      got));
  EXPECT_EQ(got.members[0].uid, 1000U);
  EXPECT_EQ(got.members[0].gid, 2097151U);
  EXPECT_EQ(got.members[1].uid, 4'000'000'000U);
  EXPECT_EQ(got.members[1].gid, 6U);
  using Xattrs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(got.members[1].xattrs, (Xattrs{{"user.a", nul}, {"user.b", "x=y"}}));
  EXPECT_EQ(got.members[2].type, TarType::kDevice);
  EXPECT_TRUE(got.members[2].xattrs.empty());
  EXPECT_EQ(got.members[3].gid, kTarNoId);
  EXPECT_EQ(got.members[4].uid, 7U);
}

TEST(TarReader, AttributesOfManyHeadersAreBounded) {
  TarBuilder builder;
  const std::string record = TarBuilder::pax("SCHILY.xattr.user.a", std::string(300'000, 'x'));
  for (int i = 0; i < 4; ++i) builder.meta('x', record);
  Recorded ignored;
  const auto result = readAll(builder.file("f", "").done(), ignored);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "bad tar archive: too many extended attributes");
}

TEST(TarReader, NamesStayInTheirFolder) {
  EXPECT_EQ(*tarRelativePath("./a//b/"), "a/b");
  EXPECT_EQ(*tarRelativePath("././"), "");
  EXPECT_EQ(*tarRelativePath("..a/b.."), "..a/b..");
  for (const char* name : {"/", "/a", "..", "a/..", "../a", "a/../b", "./.."}) {
    EXPECT_FALSE(tarRelativePath(name)) << name;
  }
}

TEST(TarReader, RefusesWhatIsNoArchive) {
  const std::string good = TarBuilder().file("f", "content").done();
  std::string flipped = good;
  flipped[3] ^= 1;
  const std::string nul("a\0b", 3);
  const struct {
    const char* what;
    std::string archive;
  } cases[] = {
      {"nothing", ""},
      {"half a header", good.substr(0, 300)},
      {"half a file", good.substr(0, 515)},
      {"no end mark", good.substr(0, 1024)},
      {"text", std::string(2000, 'x')},
      {"a flipped bit", flipped},
      {"checksum", TarBuilder().header({.name = "f", .goodChecksum = false}).done()},
      {"sparse", TarBuilder().header({.name = "f", .type = 'S'}).done()},
      {"unknown type", TarBuilder().header({.name = "f", .type = 'Z'}).done()},
      {"pax sparse",
       TarBuilder().meta('x', TarBuilder::pax("GNU.sparse.major", "1")).file("f", "").done()},
      {"pax garbage", TarBuilder().meta('x', "no record at all").file("f", "").done()},
      {"pax length 0", TarBuilder().meta('x', "0 a=b\n").file("f", "").done()},
      {"pax too long", TarBuilder().meta('x', "99 a=b\n").file("f", "").done()},
      {"pax size", TarBuilder().meta('x', TarBuilder::pax("size", "-5")).file("f", "").done()},
      {"pax size overflow", TarBuilder()
                                .meta('x', TarBuilder::pax("size", "18446744073709551615"))
                                .file("f", "")
                                .done()},
      {"pax at the end", TarBuilder().meta('x', TarBuilder::pax("path", "f")).done()},
      {"pax NUL", TarBuilder().meta('x', TarBuilder::pax("path", nul)).file("f", "").done()},
      {"global path", TarBuilder().meta('g', TarBuilder::pax("path", "f")).file("f", "").done()},
      {"global attribute",
       TarBuilder().meta('g', TarBuilder::pax("SCHILY.xattr.user.a", "x")).file("f", "").done()},
      {"a huge extended header",
       TarBuilder().header({.name = "m", .type = 'x', .size = kTarMaxMeta + 1}).done()},
      {"a name beyond all names",
       TarBuilder().meta('L', std::string(kTarMaxPath + 1, 'n')).file("f", "").done()},
      {"a huge file without its content",
       TarBuilder().header({.name = "f", .size = uint64_t{1} << 32}).done()},
  };
  for (const auto& test : cases) {
    Recorded ignored;
    const auto result = readAll(test.archive, ignored);
    ASSERT_FALSE(result) << test.what;
    EXPECT_EQ(result.error().code, Code::kInvalid) << test.what;
    EXPECT_TRUE(result.error().message.starts_with("bad tar archive: ")) << result.error().message;
  }
}

TEST(TarHeader, IsReadBackAsItWasMade) {
  struct stat stat{};
  stat.st_mode = S_IFREG | 0751;
  stat.st_size = 3;
  stat.st_uid = 4'000'000'000;
  stat.st_mtim.tv_sec = 1'650'000'000;
  for (const std::string& name :
       {std::string("short"), std::string(100, 'a'), std::string(101, 'b'), std::string(4000, 'c'),
        std::string(90, 'x') + std::string(40, '\xFF')}) {
    std::string archive;
    appendTarHeader(archive, name, "", stat);
    archive.append("abc").append(tarPadding(3), '\0');
    appendTarEnd(archive);
    Recorded got;
    ASSERT_TRUE(readAll(archive, got));
    ASSERT_EQ(got.members.size(), 1U);
    EXPECT_EQ(got.members[0].path, name);
    EXPECT_EQ(got.members[0].mode, 0751U);
    EXPECT_EQ(got.members[0].mtime.tv_sec, 1'650'000'000);
    EXPECT_EQ(got.contents[0], "abc");
  }
}

TEST(TarHeader, HoldsSizesBeyondTheOldField) {
  struct stat stat{};
  stat.st_mode = S_IFREG | 0644;
  stat.st_size = int64_t{9} << 30;
  std::string archive;
  appendTarHeader(archive, "big", "", stat);
  Recorded got;
  TarReader reader(got);
  ASSERT_TRUE(reader.feed(archive));
  ASSERT_EQ(got.members.size(), 1U);
  EXPECT_EQ(got.members[0].size, uint64_t{9} << 30);
}

}  // namespace
}  // namespace cay
