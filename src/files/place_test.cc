#include "files/place.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "files/directories.h"
#include "files/entry.h"
#include "files/place_fixture.h"
#include "files/read.h"
#include "files/whole_write.h"

namespace cay::files {
namespace {

TEST_F(PlaceTest, PathsAreAbsoluteInTheRootOrRelativeToTheHome) {
  EXPECT_EQ(must(place_->absolute("/a//b/./c/")), "/a/b/c");
  EXPECT_EQ(must(place_->absolute("a/b")), "/home/a/b");
  EXPECT_EQ(must(place_->absolute(".")), "/home");
  EXPECT_EQ(must(place_->absolute("/")), "/");
  EXPECT_EQ(must(place_->absolute("///.//")), "/");
  EXPECT_EQ(must(place_->absolute("/a/../b")), "/a/../b");
}

TEST_F(PlaceTest, BadPathsAreInvalid) {
  for (const std::string_view path : {std::string_view(""), std::string_view("/a\0b", 4)}) {
    const auto result = place_->absolute(path);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kInvalid);
  }
}

TEST_F(PlaceTest, NothingLeadsOutOfTheRoot) {
  const std::string away = "../../../../../../../.." + outside_.string();
  fs::create_symlink(outside_, root_ / "home/absolute");
  fs::create_symlink(away, root_ / "home/relative");
  fs::create_symlink("/home/relative", root_ / "home/twice");
  fs::create_symlink("/..", root_ / "home/up");
  for (const std::string& path :
       {std::string("absolute/secret"), std::string("relative/secret"), std::string("twice/secret"),
        "up" + outside_.string() + "/secret", outside_.string() + "/secret", away + "/secret",
        "/" + away + "/secret"}) {
    const auto found = place_->open(must(place_->absolute(path)), O_PATH);
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().code, Code::kNotFound) << found.error().message;
    EXPECT_FALSE(openForReading(*place_, path, {})) << path;
  }
}

TEST_F(PlaceTest, LinksAreFollowedInsideTheRoot) {
  put(root_ / "tmp/file", "inside");
  fs::create_symlink("/tmp", root_ / "home/absolute");
  fs::create_symlink("../tmp", root_ / "home/relative");
  // As in a chroot: above the root is the root.
  fs::create_symlink("../../../../tmp", root_ / "home/up");
  for (const char* path : {"absolute/file", "relative/file", "up/file", "/../../tmp/file"}) {
    EXPECT_EQ(must(openForReading(*place_, path, {})).head, "inside") << path;
  }
}

TEST_F(PlaceTest, ALinkThatIsSwappedAllTheTimeNeverLeadsOut) {
  put(root_ / "tmp/secret", "harmless");
  const fs::path link = root_ / "home/link";
  const fs::path other = root_ / "home/other";
  std::atomic<bool> stop = false;
  std::thread attacker([&] {
    std::error_code ignored;  // a write may have made a directory in its way
    while (!stop) {
      for (const fs::path& target : {fs::path("/tmp"), outside_, fs::path("../../outside")}) {
        fs::create_symlink(target, other, ignored);
        fs::rename(other, link, ignored);
      }
      fs::remove_all(link, ignored);
    }
  });
  int seen = 0;
  for (int i = 0; i < 5'000; ++i) {
    if (const auto reading = openForReading(*place_, "link/secret", {})) {
      ASSERT_EQ(reading->head, "harmless");
      ++seen;
    }
    if (const auto upload = replaceFile(place_, "link/planted", std::nullopt)) {
      (void)(*upload)->commit();
    }
    ASSERT_FALSE(fs::exists(outside_ / "planted"));
  }
  stop = true;
  attacker.join();
  EXPECT_GT(seen, 0);
}

TEST_F(PlaceTest, ErrorsNameThePath) {
  const auto missing = place_->open("/tmp/x", O_PATH);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().message, "no such file or directory: '/tmp/x'");
  fs::create_symlink("loop", root_ / "tmp/loop");
  const auto loop = place_->open("/tmp/loop", O_PATH);
  ASSERT_FALSE(loop);
  EXPECT_EQ(loop.error().code, Code::kInvalid);
}

TEST_F(PlaceTest, NamesThatAreNotUtf8AreFoundByTheirBytesAndByTheirShownForm) {
  fs::create_directory(root_ / "tmp/d\xFF");
  put(root_ / "tmp/d\xFF/f\xC3", "bytes");
  EXPECT_EQ(must(openForReading(*place_, "/tmp/d\xFF/f\xC3", {})).head, "bytes");
  EXPECT_EQ(must(openForReading(*place_, "/tmp/d%FF/f%C3", {})).head, "bytes");
  // A new file in such a directory lands there, not in a new directory.
  must(must(replaceFile(place_, "/tmp/d%FF/new", std::nullopt))->commit());
  EXPECT_TRUE(fs::exists(root_ / "tmp/d\xFF/new"));
  // A file whose name really has a '%' wins.
  put(root_ / "tmp/%FF", "percent");
  put(root_ / "tmp/\xFF", "byte");
  EXPECT_EQ(must(openForReading(*place_, "/tmp/%FF", {})).head, "percent");
  must(must(replaceFile(place_, "/tmp/50%C3", std::nullopt))->commit());
  EXPECT_TRUE(fs::exists(root_ / "tmp/50%C3"));
}

TEST_F(PlaceTest, FilesAreMadeAndOpenedAsTheIdentity) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const auto place = must(Place::create(openRoot(root_), "/home", sys::Identity{4711, 4712}));
  fs::permissions(dir_.path(), fs::perms(0755));
  put(root_ / "tmp/private", "root only");
  fs::permissions(root_ / "tmp/private", fs::perms(0600));
  ASSERT_EQ(::chown((root_ / "home").c_str(), 4711, 4712), 0);

  const auto refused = openForReading(*place, "/tmp/private", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(refused.error().message, "permission denied: '/tmp/private'");
  EXPECT_FALSE(replaceFile(place, "/tmp/not-ours", std::nullopt));

  const auto upload = must(replaceFile(place, "deep/er/file", std::nullopt));
  must(upload->write("x"));
  must(upload->commit());
  struct stat stat{};
  ASSERT_EQ(::stat((root_ / "home/deep/er/file").c_str(), &stat), 0);
  EXPECT_EQ(stat.st_uid, 4711U);
  EXPECT_EQ(stat.st_gid, 4712U);
  // The thread itself is who it was.
  EXPECT_EQ(must(openForReading(*place_, "/tmp/private", {})).head, "root only");
}

TEST_F(PlaceTest, ThePathsOfAHomeStartAtItAndDoNotLeadAboveIt) {
  const auto place = must(Place::create(openRoot(root_), "/home", std::nullopt, Paths::kHome));
  put(root_ / "home/file", "in the home");
  put(root_ / "tmp/file", "beside it");
  for (const char* path :
       {"file", "/file", "../file", "/../../file", "a/../file", "./a/b/../../file"}) {
    EXPECT_EQ(must(place->absolute(path)), "/file") << path;
    EXPECT_EQ(must(openForReading(*place, path, {})).head, "in the home") << path;
  }
  EXPECT_FALSE(openForReading(*place, "/tmp/file", {}));
  EXPECT_EQ(must(stat(*place, "/file")).path, "/file") << "what the client can pass back";
  EXPECT_EQ(must(list(*place, "/..", {})).path, "/");

  // Links are followed in the root, and never out of it.
  fs::create_symlink("/tmp/file", root_ / "home/absolute");
  fs::create_symlink("../tmp/file", root_ / "home/relative");
  EXPECT_EQ(must(openForReading(*place, "/absolute", {})).head, "beside it");
  EXPECT_EQ(must(openForReading(*place, "/relative", {})).head, "beside it");
  must(must(replaceFile(place, "/absolute", std::nullopt))->commit());
  EXPECT_EQ(get(root_ / "tmp/file"), "");
  EXPECT_TRUE(fs::is_symlink(root_ / "home/absolute"));
  fs::create_symlink(outside_ / "secret", root_ / "home/out");
  EXPECT_FALSE(openForReading(*place, "/out", {}));

  must(must(replaceFile(place, "/new/deep/file", std::nullopt))->commit());
  EXPECT_TRUE(fs::exists(root_ / "home/new/deep/file"));
  EXPECT_FALSE(remove(*place, "/", Recursive::kYes));
  EXPECT_FALSE(remove(*place, "..", Recursive::kYes));
  must(remove(*place, "/new", Recursive::kYes));
  EXPECT_TRUE(fs::exists(root_ / "home/file"));
}

TEST_F(PlaceTest, BeneathAHomeOnlyLinksThatStayThereAreFollowed) {
  const auto place =
      must(Place::create(openRoot(root_ / "home"), "/", std::nullopt, Paths::kBeneath));
  put(root_ / "home/file", "content");
  fs::create_directory(root_ / "home/dir");
  fs::create_symlink("../file", root_ / "home/dir/stays");
  fs::create_symlink("../../tmp/x", root_ / "home/dir/leaves");
  fs::create_symlink("/tmp/x", root_ / "home/absolute");
  fs::create_symlink("/", root_ / "home/top");
  EXPECT_EQ(must(openForReading(*place, "/../file", {})).head, "content");
  EXPECT_EQ(must(openForReading(*place, "dir/stays", {})).head, "content");
  put(root_ / "tmp/x", "not theirs");
  for (const char* path : {"/dir/leaves", "/absolute", "/top/etc/passwd"}) {
    const auto read = openForReading(*place, path, {});
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().code, Code::kInvalid) << path;
    EXPECT_FALSE(replaceFile(place, path, std::nullopt)) << path;
    EXPECT_FALSE(makeDirectory(*place, std::string(path) + "/new")) << path;
  }
  EXPECT_EQ(get(root_ / "tmp/x"), "not theirs");
  must(must(replaceFile(place, "/dir/stays", std::nullopt))->commit());
  EXPECT_EQ(get(root_ / "home/file"), "");
  EXPECT_FALSE(remove(*place, "/", Recursive::kYes));
  must(remove(*place, "/absolute", Recursive::kYes));
  EXPECT_EQ(get(root_ / "tmp/x"), "not theirs");
}

TEST_F(PlaceTest, WithoutLinksMeansNotEvenOnTheWay) {
  const auto place = must(Place::create(openRoot(root_), "/home", std::nullopt, Paths::kHome));
  fs::create_directories(root_ / "home/real");
  put(root_ / "home/real/file", "x");
  fs::create_symlink("real", root_ / "home/linked");
  fs::create_symlink("file", root_ / "home/real/last");
  EXPECT_TRUE(place->openWithoutLinks("/real/file", O_PATH));
  EXPECT_FALSE(place->openWithoutLinks("/linked/file", O_PATH));
  EXPECT_FALSE(place->openWithoutLinks("/real/last", O_PATH));
}

TEST_F(PlaceTest, AnEffectiveIdentityIsNotRootForProcSysEither) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  constexpr char kSetting[] = "/proc/sys/kernel/core_pattern";
  if (::access(kSetting, W_OK) != 0) GTEST_SKIP() << "read-only here";
  const auto mayWrite = [&](std::optional<sys::Identity> identity) {
    const auto place = must(Place::create(openRoot("/"), "/", identity));
    const auto acting = must(place->act());
    return place->open(kSetting, O_WRONLY).has_value();
  };
  EXPECT_TRUE(mayWrite(std::nullopt));
  EXPECT_TRUE(mayWrite(sys::Identity{4711, 4712, false})) << "then `effective` would be no use";
  EXPECT_FALSE(mayWrite(sys::Identity{4711, 4712, true}));
  EXPECT_TRUE(mayWrite(std::nullopt)) << "the thread itself is who it was";
  EXPECT_EQ(::geteuid(), 0U);
}

// Makes openat2 fail for the calling thread as an old seccomp filter does.
bool forbidOpenat2() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(PlaceTest, WithoutOpenat2OnlyTheProcesssOwnRootIsServed) {
  put(root_ / "tmp/file", "content");
  const std::string file = (root_ / "tmp/file").string();
  std::string own = "not run";
  bool confinedRefused = false;
  std::thread filtered([&] {  // the filter stays with the thread
    if (!forbidOpenat2()) return;
    confinedRefused = !Place::create(openRoot(root_), "/home");
    const auto place = Place::create(openRoot("/"), "/");
    const auto reading = place ? openForReading(**place, file, {}) : std::unexpected(place.error());
    own = reading ? reading->head : reading.error().message;
  });
  filtered.join();
  EXPECT_TRUE(confinedRefused);
  EXPECT_EQ(own, "content");
}

}  // namespace
}  // namespace cay::files
