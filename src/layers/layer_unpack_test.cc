#include "layers/layer_unpack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "base/tar_fixture.h"
#include "layers/whiteout.h"
#include "sys/file.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LayerUnpackTest : public ::testing::Test {
 protected:
  LayerUnpackTest() {
    fs::create_directory(in_);
    fs::create_directory(outside_);
    std::ofstream(outside_ / "secret") << "the secret";
    std::ofstream(temp_.path() / "neighbour") << "mine";
  }

  Result<> unpack(std::string_view archive, const UnpackLimits& limits = {},
                  Owners owners = kOwners) {
    CAY_ASSIGN(Fd folder, sys::openAt(AT_FDCWD, in_.c_str(), O_RDONLY | O_DIRECTORY));
    LayerUnpack unpack(std::move(folder), owners, limits);
    for (; !archive.empty(); archive.remove_prefix(std::min<size_t>(archive.size(), 700))) {
      CAY_TRY(unpack.write(archive.substr(0, 700)));
    }
    return unpack.finish();
  }
  void must(std::string_view archive, Owners owners = kOwners) {
    const auto done = unpack(archive, {}, owners);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string refused(std::string_view archive, const UnpackLimits& limits = {}) {
    const auto done = unpack(archive, limits);
    return done ? "not refused" : done.error().message;
  }
  void clear() {
    fs::remove_all(in_);
    fs::create_directory(in_);
  }
  // Nothing around the folder has changed.
  void expectNothingOutside(const std::string& what) {
    const auto count = [](const fs::path& folder) {
      return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
    };
    EXPECT_EQ(count(temp_.path()), 3) << what;
    EXPECT_EQ(count(outside_), 1) << what;
    EXPECT_EQ(get(temp_.path() / "neighbour"), "mine") << what;
    EXPECT_EQ(get(outside_ / "secret"), "the secret") << what;
    EXPECT_EQ(fs::hard_link_count(temp_.path() / "neighbour"), 1U) << what;
    EXPECT_EQ(fs::hard_link_count(outside_ / "secret"), 1U) << what;
    EXPECT_EQ(statOf(outside_).st_mode & 07777U, outsideMode_) << what;
    EXPECT_EQ(statOf(temp_.path()).st_mode & 07777U, 0700U) << what;
  }

  static std::string get(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static struct stat statOf(const fs::path& path) {
    struct stat stat{};
    EXPECT_EQ(::lstat(path.c_str(), &stat), 0) << path;
    return stat;
  }
  static std::string xattr(const fs::path& path, const char* name) {
    std::array<char, 256> value;
    const ssize_t size = ::lgetxattr(path.c_str(), name, value.data(), value.size());
    return size < 0 ? "none" : std::string(value.data(), static_cast<size_t>(size));
  }
  bool isWhiteout(const char* name) const {
    struct stat stat{};
    return ::lstat((in_ / name).c_str(), &stat) == 0 && layers::isWhiteout(stat);
  }
  bool isOpaque(const char* name) const { return xattr(in_ / name, kOpaqueHere) == "y"; }

  static bool isRoot() { return ::geteuid() == 0; }
  static inline const Owners kOwners = ::geteuid() == 0 ? Owners::kKept : Owners::kOwn;
  static inline const char* const kOpaqueHere = ::geteuid() == 0 ? kOpaque : kUserOpaque;

  cay::testing::TempDir temp_;
  const fs::path in_ = temp_.path() / "in";
  const fs::path outside_ = temp_.path() / "outside";
  const unsigned outsideMode_ = 0755;
};

TEST_F(LayerUnpackTest, NoArchiveWritesOutside) {
  const std::string out = outside_.string();
  const std::string secret = (outside_ / "secret").string();
  const TarBuilder linked = TarBuilder().symlink("l", out);
  const struct {
    const char* what;
    std::string archive;
  } cases[] = {
      {"..", TarBuilder().file("../neighbour", "x").done()},
      {".. in the middle", TarBuilder().file("a/../../neighbour", "x").done()},
      {".. at the end", TarBuilder().dir("a/..").done()},
      {".. alone", TarBuilder().dir("..").done()},
      {".. that stays inside", TarBuilder().dir("a").file("a/../b", "x").done()},
      {"absolute", TarBuilder().file(out + "/planted", "x").done()},
      {"absolute folder", TarBuilder().dir(out).done()},
      {"the root", TarBuilder().dir("/").done()},
      {"file through a link", TarBuilder(linked).file("l/planted", "x").done()},
      {"folder through a link", TarBuilder(linked).dir("l/planted").done()},
      {"link through a link", TarBuilder(linked).symlink("l/planted", "x").done()},
      {"fifo through a link", TarBuilder(linked).header({.name = "l/p", .type = '6'}).done()},
      {"device through a link", TarBuilder(linked).header({.name = "l/p", .type = '3'}).done()},
      {"whiteout through a link", TarBuilder(linked).file("l/.wh.secret", "").done()},
      {"opaque through a link", TarBuilder(linked).file("l/.wh..wh..opq", "").done()},
      {"deep through a link", TarBuilder(linked).file("l/a/b/c", "x").done()},
      {"through a relative link", TarBuilder().symlink("l", "..").file("l/neighbour", "x").done()},
      {"through two links",
       TarBuilder().symlink("a", ".").symlink("b", "a/..").file("b/neighbour", "x").done()},
      {"through a link in a folder",
       TarBuilder().dir("d").symlink("d/l", "../..").file("d/l/neighbour", "x").done()},
      {"through a file", TarBuilder().file("f", "").file("f/x", "").done()},
      {"through a fifo", TarBuilder().header({.name = "f", .type = '6'}).file("f/x", "").done()},
      {"hard link above", TarBuilder().hardLink("h", "../neighbour").done()},
      {"hard link to an absolute name", TarBuilder().hardLink("h", secret).done()},
      {"hard link through a link", TarBuilder(linked).hardLink("h", "l/secret").done()},
      {"hard link into a link", TarBuilder(linked).file("f", "").hardLink("l/h", "f").done()},
      {"hard link to nothing", TarBuilder().hardLink("h", "nothing").done()},
      {"hard link to the top", TarBuilder().hardLink("h", ".").done()},
      {"hard link to a folder", TarBuilder().dir("d").hardLink("h", "d").done()},
      {"hard link to a whiteout", TarBuilder().file(".wh.w", "").hardLink("h", "w").done()},
      {"whiteout of ..", TarBuilder().file(".wh...", "").done()},
      {"whiteout of .. below", TarBuilder().file("d/.wh...", "").done()},
      {"whiteout of .", TarBuilder().file(".wh..", "").done()},
      {"whiteout of nothing", TarBuilder().file(".wh.", "").done()},
      {"whiteout above", TarBuilder().file("../.wh.neighbour", "").done()},
      {"whiteout as a folder", TarBuilder().file(".wh.d/f", "").done()},
      {"opaque top", TarBuilder().file(".wh..wh..opq", "").done()},
      {"pax path",
       TarBuilder().meta('x', TarBuilder::pax("path", "../neighbour")).file("f", "x").done()},
      {"pax link",
       TarBuilder().meta('x', TarBuilder::pax("linkpath", secret)).hardLink("h", "f").done()},
      {"long name", TarBuilder().meta('L', out + "/planted").file("f", "x").done()},
      {"no name", TarBuilder().file("", "x").done()},
      {"only dots", TarBuilder().file("././.", "x").done()},
      {"a file over a folder that is not empty",
       TarBuilder().file("d/f", "").file("d", "x").done()},
      {"a name too long", TarBuilder().meta('L', std::string(256, 'n')).file("f", "").done()},
  };
  for (const auto& test : cases) {
    const auto done = unpack(test.archive);
    ASSERT_FALSE(done) << test.what;
    EXPECT_EQ(done.error().code, Code::kInvalid) << test.what << ": " << done.error().message;
    expectNothingOutside(test.what);
    clear();
  }
}

TEST_F(LayerUnpackTest, LinksAreReplacedNotFollowed) {
  const std::string secret = (outside_ / "secret").string();
  must(TarBuilder()
           .symlink("f", secret)
           .file("f", "plain")
           .symlink("d", outside_.string())
           .dir("d")
           .file("d/planted", "x")
           .symlink("o", outside_.string())
           .header({.name = "o", .type = '6'})
           .symlink("h", secret)
           .hardLink("h", "f")
           .symlink("w", secret)
           .file(".wh.w", "")
           .done());
  EXPECT_EQ(get(in_ / "f"), "plain");
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(in_ / "d")));
  EXPECT_EQ(get(in_ / "d/planted"), "x");
  EXPECT_TRUE(fs::is_fifo(fs::symlink_status(in_ / "o")));
  EXPECT_EQ(fs::hard_link_count(in_ / "f"), 2U);
  EXPECT_TRUE(fs::is_symlink(in_ / "w"));  // what a layer brings along is not hidden by it
  expectNothingOutside("links");
}

TEST_F(LayerUnpackTest, AnEndlessArchiveEnds) {
  TarBuilder many;
  for (int i = 0; i < 50; ++i) many.file("f" + std::to_string(i), "");
  EXPECT_THAT(refused(many.done(), {.entries = 49}), HasSubstr("more than 49 entries"));
  clear();
  EXPECT_EQ(refused(many.done(), {.entries = 50}), "not refused");
  clear();
  EXPECT_THAT(refused(TarBuilder().file("a/b/c/d/f", "").done(), {.entries = 4}),
              HasSubstr("entries"));
  clear();
  const std::string big = TarBuilder().file("f", std::string(5000, 'x')).done();
  EXPECT_THAT(refused(big, {.bytes = big.size() - 1}), HasSubstr("larger than"));
  EXPECT_EQ(refused(big, {.bytes = big.size()}), "not refused");
  // A size is believed before its bytes have come.
  const std::string huge = TarBuilder().header({.name = "huge", .size = uint64_t{4} << 30}).cut();
  EXPECT_THAT(refused(huge, {.bytes = (uint64_t{4} << 30) - 1}), HasSubstr("larger than"));
  EXPECT_FALSE(fs::exists(in_ / "huge"));
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "d/";
  EXPECT_THAT(refused(TarBuilder().meta('L', deep + "f").file("f", "").done()),
              HasSubstr("too deep"));
  EXPECT_THAT(refused(TarBuilder().header({.name = "s", .type = 'S', .size = 1}).done()),
              HasSubstr("unsupported type"));
  EXPECT_THAT(refused(TarBuilder()
                          .meta('x', TarBuilder::pax("GNU.sparse.realsize", "99999999999999"))
                          .file("s", "")
                          .done()),
              HasSubstr("sparse"));
  EXPECT_THAT(refused(TarBuilder().file("f", "").cut()), HasSubstr("cut off"));
}

TEST_F(LayerUnpackTest, KeepsWhatTheArchiveSays) {
  must(TarBuilder()
           .header({.name = "./", .type = '5', .mode = 0711})
           .header({.name = "d/", .type = '5', .mode = 0510, .uid = 3, .gid = 4})
           .file("d/f", "content")
           .header({.name = "suid", .mode = 06755, .uid = 1000, .gid = 50})
           .hardLink("same", "suid")
           .header({.name = "l", .type = '2', .linkName = "/etc/x", .uid = 7, .gid = 8})
           .hardLink("samel", "l")
           .header({.name = "fifo", .type = '6', .mode = 0622, .uid = 9})
           .header({.name = "tmp/", .type = '5', .mode = 01777})
           .header({.name = "closed", .mode = 0})
           .file("no/parents/given", "x")
           .done());
  EXPECT_EQ(statOf(in_).st_mode & 07777U, 0711U);
  EXPECT_EQ(statOf(in_ / "d").st_mode & 07777U, 0510U);
  EXPECT_EQ(statOf(in_ / "d").st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(get(in_ / "d/f"), "content");
  EXPECT_EQ(statOf(in_ / "d/f").st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(statOf(in_ / "suid").st_mode & 07777U, 06755U);
  EXPECT_EQ(statOf(in_ / "same").st_ino, statOf(in_ / "suid").st_ino);
  EXPECT_EQ(statOf(in_ / "samel").st_ino, statOf(in_ / "l").st_ino);
  EXPECT_EQ(fs::read_symlink(in_ / "l"), "/etc/x");
  EXPECT_EQ(statOf(in_ / "l").st_mtim.tv_sec, 1'700'000'000);
  EXPECT_EQ(statOf(in_ / "fifo").st_mode, S_IFIFO | 0622U);
  EXPECT_EQ(statOf(in_ / "tmp").st_mode & 07777U, 01777U);
  EXPECT_EQ(statOf(in_ / "closed").st_mode & 07777U, 0U);
  EXPECT_EQ(statOf(in_ / "no/parents").st_mode & 07777U, 0755U);
  if (!isRoot()) return;
  EXPECT_EQ(statOf(in_ / "d").st_uid, 3U);
  EXPECT_EQ(statOf(in_ / "d").st_gid, 4U);
  EXPECT_EQ(statOf(in_ / "suid").st_uid, 1000U);
  EXPECT_EQ(statOf(in_ / "suid").st_gid, 50U);
  EXPECT_EQ(statOf(in_ / "l").st_uid, 7U);
  EXPECT_EQ(statOf(in_ / "fifo").st_uid, 9U);
  EXPECT_EQ(statOf(in_ / "no").st_uid, 0U);
}

TEST_F(LayerUnpackTest, AnUmaskHasNoSay) {
  const mode_t before = ::umask(0777);
  must(TarBuilder().file("a/b/f", "x").dir("d").done());
  ::umask(before);
  EXPECT_EQ(statOf(in_ / "a/b").st_mode & 07777U, 0755U);
  EXPECT_EQ(statOf(in_ / "a/b/f").st_mode & 07777U, 0644U);
  EXPECT_EQ(statOf(in_ / "d").st_mode & 07777U, 0755U);
}

TEST_F(LayerUnpackTest, NamesMayBeAnyBytes) {
  const std::string odd = "a\n\xFF\x01 '\"\\";
  must(
      TarBuilder().dir(odd).file(odd + "/" + odd, "x").hardLink("h" + odd, odd + "/" + odd).done());
  EXPECT_EQ(get(in_ / odd / odd), "x");
  EXPECT_EQ(fs::hard_link_count(in_ / ("h" + odd)), 2U);
  EXPECT_THAT(refused(TarBuilder().file("../" + odd, "").done()), HasSubstr("\\x0a"));
}

TEST_F(LayerUnpackTest, OwnersThatAreNoneAreRefused) {
  if (!isRoot()) GTEST_SKIP() << "an ordinary user keeps no owners";
  for (const char* id : {"4294967295", "4294967296", "18446744073709551615", "-1", "x"}) {
    EXPECT_THAT(refused(TarBuilder().meta('x', TarBuilder::pax("uid", id)).file("f", "").done()),
                HasSubstr("owner"))
        << id;
    EXPECT_THAT(refused(TarBuilder().meta('x', TarBuilder::pax("gid", id)).dir("d").done()),
                HasSubstr("owner"))
        << id;
    clear();
  }
}

TEST_F(LayerUnpackTest, WhiteoutsAreThoseOfOverlays) {
  must(TarBuilder()
           .file("d/.wh.gone", "ignored content")
           .file(".wh.top", "")
           .dir("o")
           .file("o/.wh..wh..opq", "")
           .file("o/new", "x")
           .file("implied/.wh..wh..opq", "")
           .file(".wh..wh.plnk", "")
           .dir(".wh..wh.aufs")
           .done());
  EXPECT_TRUE(isWhiteout("d/gone"));
  EXPECT_TRUE(isWhiteout("top"));
  EXPECT_TRUE(isOpaque("o"));
  EXPECT_TRUE(isOpaque("implied"));
  EXPECT_FALSE(isOpaque("d"));
  EXPECT_EQ(get(in_ / "o/new"), "x");
  for (const auto& entry : fs::recursive_directory_iterator(in_)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".wh.")) << entry.path();
  }
}

// A whiteout speaks of the layers below, wherever it stands in the archive.
TEST_F(LayerUnpackTest, AWhiteoutAndWhatTakesItsPlace) {
  must(TarBuilder()
           .file(".wh.file-after", "")
           .file("file-after", "x")
           .file("file-before", "x")
           .file(".wh.file-before", "")
           .file(".wh.dir-after", "")
           .dir("dir-after")
           .dir("dir-before")
           .file(".wh.dir-before", "")
           .file(".wh.implied", "")
           .file("implied/f", "x")
           .file(".wh.link", "")
           .symlink("link", "x")
           .done());
  EXPECT_EQ(get(in_ / "file-after"), "x");
  EXPECT_EQ(get(in_ / "file-before"), "x");
  EXPECT_EQ(get(in_ / "implied/f"), "x");
  EXPECT_TRUE(fs::is_symlink(in_ / "link"));
  for (const char* name : {"dir-after", "dir-before", "implied"}) {
    EXPECT_TRUE(isOpaque(name)) << name;
  }
}

TEST_F(LayerUnpackTest, DevicesAreNotMade) {
  must(TarBuilder()
           .header({.name = "dev/sda", .type = '4', .mode = 0666})
           .header({.name = "dev/mem", .type = '3', .mode = 0666})
           .done());
  // Not even the content of a file below it is to be seen there.
  EXPECT_TRUE(isWhiteout("dev/sda"));
  EXPECT_TRUE(isWhiteout("dev/mem"));
}

TEST_F(LayerUnpackTest, OnlyHarmlessAttributesAreKept) {
  const std::string capability("\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
  const std::string ofAnotherRoot("\x01\0\0\x03\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  const auto record = [](const char* name, const std::string& value) {
    return TarBuilder::pax(std::string("SCHILY.xattr.") + name, value);
  };
  const std::string evil =
      record("trusted.overlay.redirect", "/etc") + record("trusted.overlay.opaque", "y") +
      record("trusted.x", "y") + record("user.overlay.redirect", "/etc") +
      record("user.overlay.opaque", "y") + record("user.overlay.metacopy", "") +
      record("security.selinux", "x") + record("system.posix_acl_access", "x") +
      record("user.", "x") + record("nonsense", "x");
  must(TarBuilder()
           .meta('x', evil + record("user.mine", std::string("a\0b", 3)) +
                          record("security.capability", capability))
           .file("f", "x")
           .meta('x', evil + record("user.mine", "d"))
           .dir("d")
           .meta('x', evil + record("security.capability", ofAnotherRoot))
           .file("g", "x")
           .meta('x', evil + record("user.mine", "x"))
           .symlink("l", "f")
           .done());
  EXPECT_EQ(xattr(in_ / "f", "user.mine"), std::string("a\0b", 3));
  EXPECT_EQ(xattr(in_ / "d", "user.mine"), "d");
  EXPECT_EQ(xattr(in_ / "f", "security.capability"), isRoot() ? capability : "none");
  EXPECT_EQ(xattr(in_ / "g", "security.capability"), "none");
  for (const char* file : {"f", "d", "g", "l"}) {
    std::array<char, 1000> names;
    const ssize_t size = ::llistxattr((in_ / file).c_str(), names.data(), names.size());
    const std::string all(names.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    for (const char* bad : {"trusted", "overlay", "posix_acl"}) {
      EXPECT_EQ(all.find(bad), std::string::npos) << file << " has " << bad;
    }
  }
}

TEST_F(LayerUnpackTest, AnOrdinaryUserOwnsAll) {
  must(TarBuilder()
           .header({.name = "f", .mode = 0644, .uid = 12345, .gid = 12345})
           .file("d/.wh.x", "")
           .file("o/.wh..wh..opq", "")
           .done(),
       Owners::kOwn);
  EXPECT_EQ(statOf(in_ / "f").st_uid, ::geteuid());
  EXPECT_TRUE(isWhiteout("d/x"));
  EXPECT_EQ(xattr(in_ / "o", kUserOpaque), "y");
  EXPECT_EQ(xattr(in_ / "o", kOpaque), "none");
}

}  // namespace
}  // namespace cay::layers
