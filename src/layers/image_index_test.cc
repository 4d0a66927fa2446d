#include "layers/image_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layers/digest.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

StoredImage image(const std::string& seed) {
  StoredImage stored;
  stored.digest = digestOf(seed);
  stored.layers = {digestOf("base"), digestOf(seed + "-layer")};
  stored.blobs = {digestOf(seed + "-blob")};
  stored.config = {.env = {"A=\xC3\xA4", "B=\""}, .cwd = "/srv", .user = "app"};
  stored.bytes = 12345;
  stored.addedAtMs = 67890;
  return stored;
}

class ImageIndexTest : public ::testing::Test {
 protected:
  cay::testing::TempDir temp_;
  ImageIndex index_{temp_.path().string()};
};

TEST_F(ImageIndexTest, FindsByEveryFormOfAName) {
  EXPECT_EQ(index_.find("python:3.12").error().code, Code::kNotFound);
  ASSERT_TRUE(index_.put("python:3.12", image("a")));
  for (const char* name : {"python:3.12", "library/python:3.12", "docker.io/library/python:3.12"}) {
    const auto found = index_.find(name);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->name, "docker.io/library/python:3.12");
    EXPECT_EQ(found->image, image("a"));
    EXPECT_EQ(found->alias, "");
    EXPECT_FALSE(found->isHost);
  }
  EXPECT_EQ(index_.find("python").error().code, Code::kNotFound);
  EXPECT_EQ(index_.find("Not A Name").error().code, Code::kInvalid);
  EXPECT_EQ(*index_.findDigest(image("a").digest), image("a"));
  EXPECT_FALSE(index_.put("host", image("a")));
}

TEST_F(ImageIndexTest, AnotherOneSeesWhatChanged) {
  ImageIndex other(temp_.path().string());
  EXPECT_FALSE(other.find("a"));
  ASSERT_TRUE(index_.put("a", image("1")));
  EXPECT_EQ(other.find("a")->image.digest, image("1").digest);
  ASSERT_TRUE(other.put("a", image("2")));
  EXPECT_EQ(index_.find("a")->image.digest, image("2").digest);
  // The one before is there until it is collected.
  EXPECT_TRUE(index_.findDigest(image("1").digest));
  ASSERT_TRUE(other.remove("a"));
  EXPECT_FALSE(index_.find("a"));
  EXPECT_EQ(index_.remove("a").error().code, Code::kNotFound);
}

TEST_F(ImageIndexTest, AliasesAreFollowedOnce) {
  ASSERT_TRUE(index_.setAlias("python:3.12", "host"));
  const auto host = index_.find("library/python:3.12");
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_TRUE(host->isHost);
  EXPECT_EQ(host->alias, "docker.io/library/python:3.12");
  // It stands before an image of the same name.
  ASSERT_TRUE(index_.put("python:3.12", image("a")));
  EXPECT_TRUE(index_.find("python:3.12")->isHost);
  ASSERT_TRUE(index_.remove("python:3.12"));
  EXPECT_EQ(index_.find("python:3.12")->image, image("a"));

  ASSERT_TRUE(index_.setAlias("py", "python:3.12"));
  const auto found = index_.find("py");
  EXPECT_EQ(found->image, image("a"));
  EXPECT_EQ(found->alias, "docker.io/library/py:latest");
  EXPECT_EQ(found->name, "docker.io/library/python:3.12");
  EXPECT_FALSE(index_.setAlias("pypy", "py"));
  EXPECT_FALSE(index_.setAlias("python:3.12", "host"));
  EXPECT_FALSE(index_.setAlias("py", "py"));
  EXPECT_FALSE(index_.setAlias("host", "py"));
  ASSERT_TRUE(index_.setAlias("nowhere", "missing"));
  EXPECT_THAT(index_.find("nowhere").error().message,
              HasSubstr("docker.io/library/missing:latest"));
  const auto listing = index_.list();
  EXPECT_THAT(
      listing->aliases,
      ElementsAre(Pair("docker.io/library/nowhere:latest", "docker.io/library/missing:latest"),
                  Pair("docker.io/library/py:latest", "docker.io/library/python:3.12")));
  EXPECT_EQ(listing->images.size(), 1U);
}

TEST_F(ImageIndexTest, ManyProcessesLoseNothing) {
  constexpr int kProcesses = 4;
  constexpr int kEach = 12;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      ImageIndex own(temp_.path().string());
      bool ok = true;
      for (int i = 0; i < kEach; ++i) {
        const std::string name = "p" + std::to_string(p) + "/i" + std::to_string(i);
        ok = ok && own.put(name, image(name)) && own.find(name);
      }
      ::_exit(ok ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(index_.list()->images.size(), size_t{kProcesses * kEach});
}

TEST_F(ImageIndexTest, UnusedImagesAreDropped) {
  for (const char* name : {"named", "kept", "held", "unused"}) {
    ASSERT_TRUE(index_.put(name, image(name)));
  }
  for (const char* name : {"kept", "held", "unused"}) ASSERT_TRUE(index_.remove(name));
  ImageIndex other(temp_.path().string());
  const auto held = other.hold(image("held").digest);
  ASSERT_TRUE(held) << held.error().message;
  const auto remaining = index_.dropUnused({image("kept").digest});
  ASSERT_TRUE(remaining) << remaining.error().message;
  EXPECT_EQ(remaining->size(), 3U);
  EXPECT_FALSE(index_.findDigest(image("unused").digest));
  EXPECT_EQ(index_.hold(image("unused").digest).error().code, Code::kNotFound);
  EXPECT_EQ(index_.hold("sha256:../x").error().code, Code::kNotFound);
}

TEST_F(ImageIndexTest, ADamagedFileIsSaidAndNotReplaced) {
  for (const std::string text :
       {"", "{", "[]", "{}", R"({"format":2,"images":{},"names":{},"aliases":{}})",
        R"({"format":1,"images":{},"names":{"a":"sha256:1"},"aliases":{}})",
        R"({"format":1,"images":{"../x":{}},"names":{},"aliases":{}})"}) {
    (void)temp_.write("index.json", text);
    EXPECT_THAT(index_.find("a").error().message, HasSubstr("index.json")) << text;
    EXPECT_FALSE(index_.put("a", image("a"))) << text;
  }
}

}  // namespace
}  // namespace cay::layers
