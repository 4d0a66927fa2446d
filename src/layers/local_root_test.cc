#include "layers/local_root.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "layers/image_store.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using isolation::Mode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LocalRootTest : public ::testing::Test {
 protected:
  LocalRootTest() {
    fs::create_directories(temp_.path() / "state/images");
    addRoot("debian");
  }

  void addRoot(const std::string& name, const char* shell = "/bin/busybox") {
    fs::create_directories(roots_ / name / "bin");
    std::ofstream(roots_ / name / "bin/busybox") << "x";
    ::chmod((roots_ / name / "bin/busybox").c_str(), 0755);
    fs::create_symlink(shell, roots_ / name / "bin/sh");
  }
  std::string refused(std::string_view name) {
    const auto image = store_.resolve(name);
    if (image) return "not refused";
    EXPECT_EQ(image.error().code, Code::kInvalid);
    return image.error().message;
  }

  cay::testing::TempDir temp_;
  fs::path roots_ = temp_.path() / "roots";
  ImageStore store_{{.folder = (temp_.path() / "state/images").string(),
                     .roots = roots_.string(),
                     .mode = Mode::kFull}};
};

TEST_F(LocalRootTest, IsOneOverlay) {
  const auto image = store_.resolve("debian");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(*image, (Image{"debian", "", {{"/", {(roots_ / "debian").string()}}}}));
  EXPECT_EQ(*store_.restore("debian", ""), *image);
}

TEST_F(LocalRootTest, TheOperatorMayUseLinks) {
  fs::rename(roots_ / "debian", temp_.path() / "elsewhere");
  fs::create_directory_symlink(temp_.path() / "elsewhere", roots_ / "deb.12_x-y");
  const auto image = store_.resolve("deb.12_x-y");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->overlays[0].lowers[0], (temp_.path() / "elsewhere").string());
}

TEST_F(LocalRootTest, UnknownNamesAreRefusedWithThoseThatThereAre) {
  std::ofstream(roots_ / "README") << "x";
  EXPECT_THAT(refused("alpine"),
              AllOf(HasSubstr("'alpine'"), HasSubstr("debian, host"), Not(HasSubstr("README"))));
}

TEST_F(LocalRootTest, NamesAreNoPaths) {
  for (const char* name : {".", "..", "../state", "debian/", "/etc", "debian/../debian", "a b"}) {
    EXPECT_THAT(refused(name), HasSubstr("not a name")) << name;
  }
  EXPECT_THAT(refused(std::string_view("debian\0x", 8)), HasSubstr("not a name"));
  EXPECT_THAT(refused(std::string(5000, 'a')), HasSubstr("not a name"));
}

TEST_F(LocalRootTest, ARootNeedsAShellInside) {
  fs::create_directories(roots_ / "empty");
  addRoot("outside", "/usr/bin/env");  // there on the machine, not in the root
  addRoot("up", "../../debian/bin/busybox");
  std::ofstream(roots_ / "file") << "x";
  for (const char* name : {"empty", "outside", "up"}) {
    EXPECT_THAT(refused(name), HasSubstr("no bin/sh")) << name;
  }
  EXPECT_THAT(refused("file"), HasSubstr("Not a directory"));
}

TEST_F(LocalRootTest, TheStateFolderMustNotBeInside) {
  for (const auto& [name, target] : {std::pair("slash", fs::path("/")), {"temp", temp_.path()}}) {
    fs::create_directory_symlink(target, roots_ / name);
  }
  fs::create_directories(temp_.path() / "bin");
  fs::copy(roots_ / "debian/bin/busybox", temp_.path() / "bin/sh");
  ::chmod((temp_.path() / "bin/sh").c_str(), 0755);
  for (const char* name : {"slash", "temp"}) {
    const auto image = store_.resolve(name);
    ASSERT_FALSE(image) << name;
    EXPECT_THAT(image.error().message, HasSubstr("state folder")) << name;
  }
}

TEST_F(LocalRootTest, WithoutAFolderThereIsOnlyTheHost) {
  ImageStore store(
      {.folder = (temp_.path() / "state/images").string(), .roots = "", .mode = Mode::kFull});
  EXPECT_THAT(store.resolve("debian").error().message, HasSubstr("there is host"));
}

}  // namespace
}  // namespace cay::layers
