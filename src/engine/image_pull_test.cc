// Images from a real registry. Needs docker-registry and skopeo (scripts/setup.sh test).
#include "engine/image_pull.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/text.h"
#include "engine/registry_fixture.h"
#include "engine/skopeo.h"
#include "layers/image_gc.h"
#include "layers/layer_store.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using layers::digestHex;
using layers::digestOf;
using layers::Owners;
using layers::StoredImage;
using ::testing::HasSubstr;

const Owners kOwners = ::geteuid() == 0 ? Owners::kKept : Owners::kOwn;

class ImagePullTest : public ::testing::Test {
 protected:
  ImagePullTest() {
    fs::create_directory(folder_);
    std::ifstream busybox("/usr/bin/busybox", std::ios::binary);
    const std::string program{std::istreambuf_iterator<char>(busybox), {}};
    base_ = TarBuilder()
                .header({.name = "bin/busybox", .size = program.size(), .mode = 0755})
                .content(program)
                .symlink("bin/sh", "busybox")
                .file("etc/gone", "x")
                .done();
  }

  Result<StoredImage> pull(const std::string& name) { return pullImage(options_, name); }
  StoredImage mustPull(const std::string& name) {
    auto stored = pull(name);
    EXPECT_TRUE(stored) << stored.error().message;
    return stored ? *std::move(stored) : StoredImage();
  }
  // Pulls in a process that ends itself as soon as `when` is true.
  void pullAndBeKilled(const std::string& name,
                       const std::function<bool(const PullProgress&)>& when) {
    const pid_t child = ::fork();
    if (child == 0) {
      PullOptions options = options_;
      options.progress = [&](const PullProgress& progress) {
        if (when(progress)) ::kill(::getpid(), SIGKILL);
      };
      (void)pullImage(options, name);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it was over before it could be killed";
  }
  size_t entriesIn(const char* part) const {
    if (!fs::exists(folder_ / part)) return 0;
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_ / part), {}));
  }
  std::map<std::string, ino_t> blobs() const {
    std::map<std::string, ino_t> out;
    for (const auto& entry : fs::directory_iterator(folder_ / "blobs/sha256")) {
      struct stat stat{};
      EXPECT_EQ(::stat(entry.path().c_str(), &stat), 0);
      out[entry.path().filename()] = stat.st_ino;
    }
    return out;
  }
  Result<layers::Collected> collect() {
    return layers::collectImages(folder_.string(), index_, store_, {});
  }

  cay::testing::TempDir temp_;
  const fs::path folder_ = temp_.path() / "images";
  PullOptions options_{.folder = folder_.string(), .owners = kOwners};
  layers::ImageIndex index_{folder_.string()};
  layers::LayerStore store_{folder_.string(), kOwners};
  std::string base_;
  const std::string one_ = TarBuilder().file("etc/one", "1").file("etc/.wh.gone", "").done();
  const std::string two_ = TarBuilder().file("etc/two", "2").done();
};

TEST_F(ImagePullTest, TagsShareLayersUntilTheLastIsGone) {
  ImageRegistry registry;
  registry.push("demo:1", {base_, one_});
  registry.push("demo:2", {base_, two_});
  size_t fetched = 0;
  PullProgress last;
  options_.progress = [&](const PullProgress& progress) {
    if (progress.stage == PullProgress::Stage::kFetching) fetched = progress.done;
    last = progress;
  };
  const StoredImage one = mustPull(registry.name("demo:1"));
  EXPECT_EQ(fetched, 3U);  // two layers and a configuration
  EXPECT_EQ(last.stage, PullProgress::Stage::kUnpacking);
  EXPECT_EQ(last.done, 2U);
  EXPECT_EQ(last.total, 2U);
  EXPECT_EQ(one.layers, (std::vector{digestOf(base_), digestOf(one_)}));
  EXPECT_EQ(one.config.env, std::vector<std::string>{"FROM=image"});
  EXPECT_EQ(one.config.cwd, "/srv");
  EXPECT_EQ(index_.find(registry.name("demo:1"))->image, one);
  struct stat busybox{};
  ASSERT_EQ(::stat((store_.path(one.layers[0]) + "/bin/busybox").c_str(), &busybox), 0);
  EXPECT_EQ(busybox.st_mode & 07777U, 0755U);

  const auto before = blobs();
  const StoredImage two = mustPull(registry.name("demo:2"));
  EXPECT_EQ(two.layers, (std::vector{digestOf(base_), digestOf(two_)}));
  EXPECT_EQ(entriesIn("layers"), 3U);
  const auto after = blobs();
  for (const auto& [name, inode] : before) EXPECT_EQ(after.at(name), inode) << "fetched again";
  EXPECT_EQ(entriesIn("new"), 0U);

  ASSERT_TRUE(index_.remove(registry.name("demo:1")));
  ASSERT_TRUE(collect());
  EXPECT_FALSE(store_.has(digestOf(one_)));
  EXPECT_TRUE(store_.has(digestOf(base_)));
  ASSERT_TRUE(index_.remove(registry.name("demo:2")));
  ASSERT_TRUE(collect());
  EXPECT_EQ(entriesIn("layers"), 0U);
  EXPECT_EQ(entriesIn("blobs/sha256"), 0U);
}

TEST_F(ImagePullTest, ADigestIsThatImageOrNone) {
  ImageRegistry registry;
  registry.push("demo:1", {one_});
  const StoredImage stored = mustPull(registry.name("demo:1"));
  const std::string pinned = registry.name("demo@" + stored.digest);
  EXPECT_EQ(index_.find(pinned).error().code, Code::kNotFound);
  EXPECT_EQ(mustPull(pinned).digest, stored.digest);
  EXPECT_TRUE(index_.find(pinned));
  const auto wrong = pull(registry.name("demo@" + digestOf("another")));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::kNotFound) << wrong.error().message;
  // A registry that lies: another manifest under that digest.
  registry.push("demo:2", {two_});
  const StoredImage other = mustPull(registry.name("demo:2"));
  const fs::path data = registry.data() / "docker/registry/v2/blobs/sha256";
  const auto file = [&](const std::string& digest) {
    const std::string hex(digestHex(digest));
    return data / hex.substr(0, 2) / hex / "data";
  };
  fs::copy_file(file(other.digest), file(stored.digest), fs::copy_options::overwrite_existing);
  ASSERT_TRUE(index_.remove(pinned));
  ASSERT_FALSE(pull(pinned));
  EXPECT_FALSE(index_.find(pinned));
}

TEST_F(ImagePullTest, GoesOnWhereItWasKilled) {
  ImageRegistry registry;
  const std::string name = registry.name("demo:1");
  registry.push("demo:1", {base_, one_});
  pullAndBeKilled(name, [](const PullProgress& progress) {
    return progress.stage == PullProgress::Stage::kUnpacking && progress.done == 1;
  });
  EXPECT_FALSE(index_.find(name));
  EXPECT_EQ(entriesIn("layers"), 1U);
  EXPECT_EQ(entriesIn("new"), 1U);
  const auto before = blobs();
  mustPull(name);
  const auto after = blobs();
  for (const auto& [blob, inode] : before) {
    if (after.at(blob) != inode) EXPECT_LT(fs::file_size(folder_ / "blobs/sha256" / blob), 4096U);
  }
  EXPECT_TRUE(index_.find(name));
  ASSERT_TRUE(collect());
  EXPECT_EQ(entriesIn("new"), 0U);
  EXPECT_EQ(entriesIn("layers"), 2U);
}

TEST_F(ImagePullTest, NothingHalfFetchedIsTakenForWhole) {
  ImageRegistry registry;
  const std::string name = registry.name("demo:1");
  registry.push("demo:1", {base_, one_});
  pullAndBeKilled(name, [](const PullProgress& progress) { return progress.done == 1; });
  EXPECT_FALSE(index_.find(name));
  mustPull(name);
  EXPECT_TRUE(store_.has(digestOf(base_)));
}

TEST_F(ImagePullTest, ADamagedBlobIsFetchedAgain) {
  ImageRegistry registry;
  const std::string name = registry.name("demo:1");
  registry.push("demo:1", {base_, one_});
  const StoredImage stored = mustPull(name);
  for (const std::string& blob : stored.blobs) {
    ASSERT_TRUE(store_.removeExcept({}));
    std::fstream file(folder_ / "blobs/sha256" / digestHex(blob), std::ios::in | std::ios::out);
    file.seekp(9);
    file.put('!');
    file.close();
    EXPECT_EQ(mustPull(name).layers, stored.layers) << blob;
    EXPECT_EQ(entriesIn("layers"), 2U);
  }
}

TEST_F(ImagePullTest, AHostileLayerLeavesNothing) {
  ImageRegistry registry;
  const std::string name = registry.name("evil:1");
  registry.push("evil:1", {one_, TarBuilder().symlink("l", "/").file("l/planted", "x").done()});
  const auto stored = pull(name);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, Code::kInvalid);
  EXPECT_THAT(stored.error().message, HasSubstr("leads through 'l'"));
  EXPECT_FALSE(fs::exists("/planted"));
  EXPECT_FALSE(index_.find(name));
  EXPECT_EQ(entriesIn("layers"), 1U);
  EXPECT_EQ(entriesIn("new"), 0U);
  options_.limits = {.bytes = 1000};
  EXPECT_FALSE(pull(name));
}

TEST_F(ImagePullTest, ARegistryMayWantAPassword) {
  ImageRegistry registry(ImageRegistry::Access::kWithPassword);
  const std::string name = registry.name("demo:1");
  registry.push("demo:1", {one_});
  const auto authFile = [&](const std::string& password) {
    return temp_.write("auth.json", R"({"auths":{")" + registry.host() + R"(":{"auth":")" +
                                        base64Encode(ImageRegistry::kUser + (":" + password)) +
                                        R"("}}})");
  };
  for (const char* auth : {R"({"auths":{}})", "wrong"}) {
    options_.authFile = *auth == '{' ? temp_.write("auth.json", auth) : authFile(auth);
    const auto denied = pull(name);
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().code, Code::kDenied) << denied.error().message;
    EXPECT_THAT(denied.error().message, Not(HasSubstr("wrong")));
  }
  options_.authFile = authFile(ImageRegistry::kPassword);
  mustPull(name);
}

TEST_F(ImagePullTest, WhatIsWrongIsTold) {
  EXPECT_EQ(pull("127.0.0.1:1/demo").error().code, Code::kUnreachable);
  EXPECT_EQ(pull("host").error().code, Code::kInvalid);
  EXPECT_EQ(pull("--help").error().code, Code::kInvalid);
  EXPECT_EQ(pull("Not A Name").error().code, Code::kInvalid);
  ImageRegistry registry;
  EXPECT_EQ(pull(registry.name("demo:9")).error().code, Code::kNotFound);
}

TEST_F(ImagePullTest, ImportsFoldersAndArchives) {
  const fs::path root = temp_.path() / "root";
  fs::create_directories(root / "bin");
  (void)temp_.write("root/bin/sh", "#!");
  fs::permissions(root / "bin/sh", fs::perms(0755));
  fs::create_hard_link(root / "bin/sh", root / "bin/bash");
  fs::create_symlink("/etc/passwd", root / "link");
  const auto folder = importFolder(options_, "mine:1", root.string());
  ASSERT_TRUE(folder) << folder.error().message;
  const fs::path layer = store_.path(folder->layers.at(0));
  EXPECT_EQ(fs::hard_link_count(layer / "bin/bash"), 2U);
  EXPECT_EQ(fs::read_symlink(layer / "link"), "/etc/passwd");
  EXPECT_EQ(fs::status(layer / "bin/sh").permissions(), fs::perms(0755));
  EXPECT_EQ(importFolder(options_, "mine:2", root.string())->digest, folder->digest);
  EXPECT_EQ(index_.find("mine:2")->image.layers, folder->layers);
  EXPECT_EQ(importFolder(options_, "mine", temp_.path().string()).error().code, Code::kConflict);
  EXPECT_EQ(importFolder(options_, "mine", "/nowhere").error().code, Code::kNotFound);

  const std::string plain = temp_.write("root.tar", base_);
  const auto tar = importTar(options_, "t:1", plain);
  ASSERT_TRUE(tar) << tar.error().message;
  EXPECT_EQ(tar->layers, std::vector{digestOf(base_)});
  for (const char* tool : {"gzip", "zstd"}) {
    const std::string packed = plain + "." + tool;
    const Fd out(::open(packed.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const Fd in(::open(plain.c_str(), O_RDONLY | O_CLOEXEC));
    auto process = ToolProcess::start({.program = findTool(tool, tool).value(),
                                       .arguments = {"-c"},
                                       .in = in.get(),
                                       .out = out.get()});
    ASSERT_TRUE(process->wait());
    const auto imported = importTar(options_, "t:2", packed);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->digest, tar->digest);
    fs::resize_file(packed, fs::file_size(packed) - 20);
    EXPECT_EQ(importTar(options_, "t:3", packed).error().code, Code::kInvalid);
  }
  EXPECT_FALSE(importTar(options_, "t:3", "/dev/null"));
  EXPECT_FALSE(index_.find("t:3"));
}

TEST(Skopeo, ItsLinesAreUnderstood) {
  const std::string digest = digestOf("x");
  EXPECT_EQ(readSkopeoLine("Copying blob " + digest).digest, digest);
  EXPECT_EQ(readSkopeoLine("Copying blob " + digest + " skipped: already exists").digest, digest);
  EXPECT_EQ(readSkopeoLine("Copying config " + digest).digest, digest);
  EXPECT_EQ(readSkopeoLine("Copying blob sha256:../..").digest, "");
  EXPECT_EQ(readSkopeoLine("Writing manifest").digest, "");
  EXPECT_EQ(readSkopeoLine(R"(time="t" level=fatal msg="a: \"b\" c" x=y)").failure, "a: \"b\" c");
  EXPECT_EQ(readSkopeoLine(R"(level=fatal msg="\)").failure, "\\");
}

TEST(Skopeo, OnlyThisMachineNeedsNoCertificate) {
  for (const char* registry :
       {"localhost", "localhost:5000", "127.0.0.1", "127.1.2.3:5000", "[::1]", "[::1]:5000"}) {
    EXPECT_TRUE(isLoopback(registry)) << registry;
  }
  for (const char* registry : {"127.example.com", "localhost.example.com", "docker.io",
                               "[::2]:5000", "10.0.0.1:5000", "1127.0.0.1"}) {
    EXPECT_FALSE(isLoopback(registry)) << registry;
  }
}

}  // namespace
}  // namespace cay::engine
