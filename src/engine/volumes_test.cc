#include "engine/volumes.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Type = VolumeRef::Type;

class VolumesTest : public ::testing::Test {
 protected:
  static VolumeRef ref(Type type, std::string source, std::string path = {}) {
    VolumeRef out;
    out.type = type;
    out.source = std::move(source);
    out.at = "/data";
    out.path = std::move(path);
    return out;
  }
  [[nodiscard]] fs::path folder() const { return fs::canonical(dir_.path()); }
  [[nodiscard]] Result<isolation::Bind> resolve(const VolumeRef& volume) const {
    return Volumes(folder(), "/server").resolve(volume);
  }

  testing::TempDir dir_;
};

TEST_F(VolumesTest, ABucketIsMadeWhenItIsFirstAskedFor) {
  const auto bind = resolve(ref(Type::kBucket, "me/things", "/deep/er"));
  ASSERT_TRUE(bind) << bind.error().message;
  EXPECT_EQ(bind->source, folder() / "buckets/me/things/deep/er");
  EXPECT_EQ(bind->at, "/data");
  EXPECT_FALSE(bind->readOnly);
  EXPECT_FALSE(bind->isFile);
  EXPECT_TRUE(fs::is_directory(bind->source));
  VolumeRef again = ref(Type::kBucket, "me/things");
  again.readOnly = true;
  ASSERT_TRUE(resolve(again));
  EXPECT_TRUE(resolve(again)->readOnly);
}

TEST_F(VolumesTest, AllElseMustBeHereAndIsNeverChanged) {
  const auto missing = resolve(ref(Type::kModel, "a/b"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("model 'a/b' is not here"));
  EXPECT_THAT(missing.error().message, HasSubstr((folder() / "models/a/b").string()));
  EXPECT_FALSE(fs::exists(folder() / "models"));
  fs::create_directories(folder() / "models/a/b");
  fs::create_directories(folder() / "models/a/b@v1");
  ASSERT_TRUE(resolve(ref(Type::kModel, "a/b")));
  EXPECT_TRUE(resolve(ref(Type::kModel, "a/b"))->readOnly);
  VolumeRef revised = ref(Type::kModel, "a/b");
  revised.revision = "v1";
  EXPECT_EQ(resolve(revised)->source, folder() / "models/a/b@v1");
  revised.revision = "main";
  EXPECT_EQ(resolve(revised)->source, folder() / "models/a/b");
  EXPECT_FALSE(resolve(ref(Type::kModel, "a/b", "missing")));
}

TEST_F(VolumesTest, AFileIsMountedAsOne) {
  fs::create_directories(folder() / "datasets/a/b");
  std::ofstream(folder() / "datasets/a/b/x.csv") << "1\n";
  const auto bind = resolve(ref(Type::kDataset, "a/b", "x.csv"));
  ASSERT_TRUE(bind) << bind.error().message;
  EXPECT_TRUE(bind->isFile);
}

TEST_F(VolumesTest, NoNameLeadsOut) {
  for (const char* source : {"", "a", "a/b/c", "../etc", "a/..", "./a", "/etc/passwd", "a/b@main",
                             "a/b\n", "a//b", "a/ b", "\xc3\xa9/b"}) {
    const auto bind = resolve(ref(Type::kBucket, source));
    ASSERT_FALSE(bind) << source;
    EXPECT_EQ(bind.error().code, Code::kInvalid) << source;
  }
  for (const char* path : {"..", "a/../..", "../../etc", "x/.."}) {
    EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", path))) << path;
  }
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", std::string("x\0y", 3))));
  VolumeRef revised = ref(Type::kModel, "a/b");
  for (const char* revision : {"..", "../x", "a/b", "refs/pr/1"}) {
    revised.revision = revision;
    EXPECT_FALSE(resolve(revised)) << revision;
  }
}

TEST_F(VolumesTest, NoLinkIsFollowed) {
  ASSERT_TRUE(resolve(ref(Type::kBucket, "a/b")));
  fs::create_symlink("/etc", folder() / "buckets/a/b/out");
  fs::create_symlink("inner", folder() / "buckets/a/b/same");
  fs::create_symlink("/etc", folder() / "buckets/a/whole");
  fs::create_directories(folder() / "buckets/a/b/inner");
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", "out")));
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", "out/made")));
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", "same")));
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/whole")));
  EXPECT_FALSE(fs::exists("/etc/made"));
}

TEST_F(VolumesTest, NothingLiesOverWhatIsOurs) {
  VolumeRef volume = ref(Type::kBucket, "a/b");
  for (const char* at : {"/", "/proc", "/proc/self", "/dev", "/sys/fs", "/etc/hosts",
                         "/etc/resolv.conf", "data", "/a/../b", ""}) {
    volume.at = at;
    EXPECT_FALSE(resolve(volume)) << at;
  }
}

TEST_F(VolumesTest, TheServersBucketIsOurServer) {
  VolumeRef volume = ref(Type::kBucket, "huggingface/sbx-server");
  const auto bind = resolve(volume);
  ASSERT_TRUE(bind);
  EXPECT_EQ(bind->source, "/server");
  EXPECT_TRUE(bind->readOnly);
}

TEST_F(VolumesTest, APipeIsNoVolume) {
  ASSERT_TRUE(resolve(ref(Type::kBucket, "a/b")));
  ASSERT_EQ(::mkfifo((folder() / "buckets/a/b/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(resolve(ref(Type::kBucket, "a/b", "pipe")));
}

}  // namespace
}  // namespace cay::engine
