#include "layers/pulled_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/tar_fixture.h"
#include "layers/digest.h"
#include "layers/image_gc.h"
#include "layers/image_store.h"
#include "sys/file.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using isolation::Mode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Mode kMode = ::geteuid() == 0 ? Mode::kFull : Mode::kUnprivileged;

class PulledImagesTest : public ::testing::Test {
 protected:
  PulledImagesTest() {
    for (const char* folder :
         {"pulled", "state", "roots/local/bin", "machine/etc", "machine/usr"}) {
      fs::create_directories(temp_.path() / folder);
    }
    std::ofstream(temp_.path() / "roots/local/bin/sh") << "x";
    fs::permissions(temp_.path() / "roots/local/bin/sh", fs::perms(0755));
  }

  std::string addLayer(const std::string& file) {
    const auto tar = sys::memoryFile("tar", TarBuilder().file(file, file).done());
    return layers_.add(tar->get(), "")->diffId;
  }
  // Returns the digest.
  std::string addImage(const std::string& name, std::vector<std::string> layers) {
    StoredImage stored;
    stored.digest = digestOf(name);
    stored.layers = std::move(layers);
    stored.blobs = {digestOf(name + "-blob")};
    stored.config.env = {"A=b"};
    fs::create_directories(folder_ / "blobs/sha256");
    std::ofstream(folder_ / "blobs/sha256" / digestHex(stored.blobs[0])) << "x";
    EXPECT_TRUE(index_.put(name, stored));
    return stored.digest;
  }
  size_t blobs() {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_ / "blobs/sha256"), {}));
  }
  ImageStore::Options options(Mode mode = kMode) {
    return {.folder = (temp_.path() / "state").string(),
            .roots = (temp_.path() / "roots").string(),
            .mode = mode,
            .machine = (temp_.path() / "machine").string(),
            .pulled = folder_.string()};
  }

  cay::testing::TempDir temp_;
  const fs::path folder_ = temp_.path() / "pulled";
  ImageIndex index_{folder_.string()};
  LayerStore layers_{folder_.string(), ::geteuid() == 0 ? Owners::kKept : Owners::kOwn};
};

TEST_F(PulledImagesTest, AnImageIsItsLayersTopmostFirst) {
  const std::string base = addLayer("base");
  const std::string top = addLayer("top");
  const std::string digest = addImage("app:1", {base, top});
  ImageStore store(options());
  const auto image = store.resolve("app:1");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->name, "docker.io/library/app:1");
  EXPECT_EQ(image->version, digest);
  ASSERT_EQ(image->overlays.size(), 1U);
  EXPECT_EQ(image->overlays[0].at, "/");
  EXPECT_THAT(image->overlays[0].lowers, ElementsAre(layers_.path(top), layers_.path(base)));
  EXPECT_THAT(image->config.env, ElementsAre("A=b"));
  // Another image has the name by now; a sandbox that was made before keeps its own.
  addImage("other", {base});
  ASSERT_TRUE(index_.put("app:1", *index_.findDigest(digestOf("other"))));
  EXPECT_THAT(store.resolve("app:1")->overlays[0].lowers, ElementsAre(layers_.path(base)));
  EXPECT_EQ(store.restore("app:1", digest)->overlays, image->overlays);
}

TEST_F(PulledImagesTest, AliasesThenImagesThenLocalRoots) {
  ImageStore store(options());
  EXPECT_EQ(store.resolve("local")->overlays[0].lowers[0], (temp_.path() / "roots/local").string());
  addImage("local", {addLayer("x")});
  EXPECT_EQ(store.resolve("local")->name, "docker.io/library/local:latest");
  ASSERT_TRUE(index_.setAlias("local", "host"));
  const auto host = store.resolve("local");
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(host->name, "host");
  EXPECT_EQ(host->alias, "docker.io/library/local:latest");
  EXPECT_EQ(store.restore("local", host->version)->overlays, host->overlays);
  EXPECT_EQ(store.resolve("")->alias, "");
  addImage("app", {addLayer("y")});
  ASSERT_TRUE(index_.setAlias("nick", "app"));
  EXPECT_EQ(store.resolve("nick")->alias, "docker.io/library/nick:latest");
  EXPECT_EQ(store.resolve("nick")->name, "docker.io/library/app:latest");
}

TEST_F(PulledImagesTest, WhatIsNotHereIsToldApart) {
  ImageStore store(options());
  EXPECT_EQ(store.resolve("unknown:1").error().code, Code::kNotFound);
  EXPECT_THAT(store.resolve("unknown:1").error().message, HasSubstr("'unknown:1' is not here"));
  EXPECT_EQ(store.resolve("../x").error().code, Code::kInvalid);
  EXPECT_EQ(store.restore("app", digestOf("gone")).error().code, Code::kNotFound);
  addImage("app", {digestOf("no such layer")});
  EXPECT_THAT(store.resolve("app").error().message, HasSubstr("pull or import it again"));
  ImageStore restricted(options(Mode::kRestricted));
  EXPECT_THAT(restricted.resolve("app").error().message, HasSubstr("restricted mode"));
}

TEST_F(PulledImagesTest, WhatIsInUseIsNotCollected) {
  const std::string shared = addLayer("shared");
  const std::string ofA = addLayer("a");
  const std::string ofB = addLayer("b");
  const std::string a = addImage("a", {shared, ofA});
  addImage("b", {shared, ofB});
  std::optional<ImageStore> store(std::in_place, options());
  ASSERT_TRUE(store->resolve("a"));
  ASSERT_TRUE(index_.remove("a"));
  ASSERT_TRUE(index_.remove("b"));
  const auto collect = [&](const std::set<std::string>& inUse) {
    return collectImages(folder_.string(), index_, layers_, inUse);
  };
  // `a` was given out by a living store, whose sandbox nobody else knows of.
  const auto collected = collect({});
  ASSERT_TRUE(collected) << collected.error().message;
  EXPECT_EQ(collected->layers, 1U);
  EXPECT_EQ(collected->blobs, 1U);
  EXPECT_TRUE(layers_.has(shared));
  EXPECT_TRUE(layers_.has(ofA));
  EXPECT_FALSE(layers_.has(ofB));
  EXPECT_TRUE(store->restore("a", a));
  // The host is gone, its sandboxes are not.
  store.reset();
  ASSERT_TRUE(collect({a}));
  EXPECT_TRUE(layers_.has(ofA));
  ASSERT_TRUE(collect({}));
  EXPECT_FALSE(layers_.has(ofA));
  EXPECT_FALSE(layers_.has(shared));
  EXPECT_EQ(blobs(), 0U);
}

TEST_F(PulledImagesTest, AStoreLetsGoOfWhatItsSandboxesLeft) {
  const std::string layer = addLayer("a");
  const std::string digest = addImage("a", {layer});
  ImageStore store(options());
  ASSERT_TRUE(store.resolve("a"));
  ASSERT_TRUE(index_.remove("a"));
  store.removeUnused({});  // one may be on its way
  EXPECT_TRUE(layers_.has(layer));
  store.removeUnused({digest});
  EXPECT_TRUE(layers_.has(layer));
  store.removeUnused({});
  EXPECT_FALSE(layers_.has(layer));
}

TEST_F(PulledImagesTest, NothingIsCollectedWhileAnImageIsPulled) {
  const std::string layer = addLayer("on its way into an image");
  auto pull = holdOffRemoval(folder_.string());
  ASSERT_TRUE(pull);
  EXPECT_EQ(collectImages(folder_.string(), index_, layers_, {}).error().code, Code::kConflict);
  EXPECT_TRUE(layers_.has(layer));
  pull->reset();
  EXPECT_TRUE(collectImages(folder_.string(), index_, layers_, {}));
  EXPECT_FALSE(layers_.has(layer));
}

}  // namespace
}  // namespace cay::layers
