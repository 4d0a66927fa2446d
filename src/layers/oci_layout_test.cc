#include "layers/oci_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isolation/stage.h"
#include "layers/digest.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kManifestType[] = "application/vnd.oci.image.manifest.v1+json";
constexpr char kIndexType[] = "application/vnd.oci.image.index.v1+json";
constexpr char kLayerType[] = "application/vnd.oci.image.layer.v1.tar+gzip";

class OciLayoutTest : public ::testing::Test {
 protected:
  OciLayoutTest() { fs::create_directories(temp_.path() / "blobs/sha256"); }

  // Stores the text; its descriptor with what is given besides.
  std::string blob(const std::string& text, const std::string& type, const std::string& more = "") {
    const std::string digest = digestOf(text);
    std::ofstream(temp_.path() / "blobs/sha256" / digestHex(digest), std::ios::binary) << text;
    return R"({"mediaType":")" + type + R"(","digest":")" + digest + R"(","size":)" +
           std::to_string(text.size()) + more + "}";
  }
  static std::string platform(const std::string& os, const std::string& architecture) {
    return R"(,"platform":{"os":")" + os + R"(","architecture":")" + architecture + R"("})";
  }
  static std::string config(const std::string& settings, const std::string& diffIds,
                            const std::string& architecture = "amd64") {
    return R"({"os":"linux","architecture":")" + architecture + R"(","config":)" + settings +
           R"(,"rootfs":{"type":"layers","diff_ids":[)" + diffIds + "]}}";
  }
  std::string manifest(const std::string& configText, const std::string& layers) {
    return R"({"schemaVersion":2,"config":)" +
           blob(configText, "application/vnd.oci.image.config.v1+json") + R"(,"layers":[)" +
           layers + "]}";
  }
  void index(const std::string& manifests) const {
    std::ofstream(temp_.path() / "index.json")
        << R"({"schemaVersion":2,"manifests":[)" << manifests << "]}";
  }
  std::string one(const std::string& configText, const std::string& layers,
                  const std::string& more = "") {
    return blob(manifest(configText, layers), kManifestType, more);
  }
  std::string refused() {
    const auto image = layout_.read("amd64");
    if (image) return "not refused";
    EXPECT_EQ(image.error().code, Code::kInvalid) << image.error().message;
    return image.error().message;
  }

  cay::testing::TempDir temp_;
  const OciLayout layout_{temp_.path().string(), (temp_.path() / "blobs").string()};
  const std::string diffId_ = "sha256:" + std::string(64, '1');
  const std::string ids_ = "\"" + diffId_ + "\"";
};

TEST_F(OciLayoutTest, ReadsAnImage) {
  const std::string layer = blob("layer", kLayerType);
  const std::string text = manifest(
      config(R"({"Env":["PATH=/bin","A=b=c"],"WorkingDir":"/srv","User":"app"})", ids_), layer);
  index(blob(text, kManifestType));
  const auto image = layout_.read("amd64");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->digest, digestOf(text));
  ASSERT_EQ(image->layers.size(), 1U);
  EXPECT_EQ(image->layers[0].digest, digestOf("layer"));
  EXPECT_EQ(image->layers[0].size, 5U);
  EXPECT_EQ(image->layers[0].diffId, diffId_);
  EXPECT_THAT(image->config.env, ElementsAre("PATH=/bin", "A=b=c"));
  EXPECT_EQ(image->config.cwd, "/srv");
  EXPECT_EQ(image->config.user, "app");
}

TEST_F(OciLayoutTest, ASparseConfigurationHasDefaults) {
  index(one(config("null", ids_), blob("l", kLayerType)));
  const auto image = layout_.read("amd64");
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->config, ImageConfig());
  index(one(config(R"({"Env":null,"WorkingDir":"srv"})", ids_), blob("l", kLayerType)));
  EXPECT_EQ(layout_.read("amd64")->config.cwd, "/srv");
}

TEST_F(OciLayoutTest, ChoosesThePlatform) {
  const std::string layer = blob("l", kLayerType);
  const std::string amd = one(config("{}", ids_), layer, platform("linux", "amd64"));
  const std::string arm = one(config("{}", ids_, "arm64"), layer, platform("linux", "arm64"));
  const std::string note = one(config("{}", ids_), layer, platform("unknown", "unknown"));
  const std::string windows = one(config("{}", ids_), layer, platform("windows", "amd64"));
  index(windows + "," + note + "," + arm + "," + amd);
  EXPECT_TRUE(layout_.read("amd64"));
  EXPECT_TRUE(layout_.read("arm64"));
  EXPECT_NE(layout_.read("amd64")->digest, layout_.read("arm64")->digest);
  EXPECT_THAT(layout_.read("riscv64").error().message, HasSubstr("linux/arm64, linux/amd64"));
  // The index may be that of a registry, inside the layout's own.
  const std::string inner = R"({"manifests":[)" + arm + "," + amd + "]}";
  index(blob(inner, kIndexType));
  EXPECT_TRUE(layout_.read("amd64"));
  std::string nested = inner;
  for (int i = 0; i < 4; ++i) nested = R"({"manifests":[)" + blob(nested, kIndexType) + "]}";
  std::ofstream(temp_.path() / "index.json") << nested;
  EXPECT_THAT(refused(), HasSubstr("nested"));
}

TEST_F(OciLayoutTest, WhatIsDamagedIsRefused) {
  const std::string layer = blob("l", kLayerType);
  const std::string good = one(config("{}", ids_), layer);
  index(good);
  ASSERT_TRUE(layout_.read("amd64"));
  // One byte of each document in turn.
  for (const auto& entry : fs::directory_iterator(temp_.path() / "blobs/sha256")) {
    if (fs::file_size(entry.path()) < 10) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out);
    file.seekp(5);
    file.put('!');
    file.close();
    EXPECT_THAT(refused(), HasSubstr("damaged"));
    std::fstream back(entry.path(), std::ios::in | std::ios::out | std::ios::app);
    back << " ";
    back.close();
    EXPECT_THAT(refused(), HasSubstr("size"));
    index(one(config("{}", ids_), layer));
    ASSERT_TRUE(layout_.read("amd64"));
  }
}

TEST_F(OciLayoutTest, WhatMakesNoSenseIsRefused) {
  const std::string layer = blob("l", kLayerType);
  const auto expect = [&](const std::string& manifests, const char* why) {
    index(manifests);
    EXPECT_THAT(refused(), HasSubstr(why)) << manifests;
  };
  expect("", "no manifest");
  expect("5", "descriptor");
  expect(R"({"digest":"sha256:../../etc/passwd","size":1})", "digest");
  expect(R"({"digest":")" + diffId_ + R"(","size":-1})", "size");
  expect(R"({"digest":")" + diffId_ + R"(","size":99999999})", "too large");
  expect(blob("[]", kManifestType), "no object");
  expect(blob("{", kManifestType), "its manifest");
  expect(blob("{}", kManifestType), "no configuration");
  expect(one("[]", layer), "no object");
  expect(one(config("{}", ids_), ""), "no layers");
  expect(one(config("{}", ""), layer), "do not match");
  expect(one(config("{}", ids_ + "," + ids_), layer), "do not match");
  expect(one(config("{}", "\"sha256:x\""), layer), "digest");
  expect(one(config("{}", ids_, "arm64"), layer), "'linux/arm64'");
  expect(one(config("{}", ids_), blob("l", "application/vnd.docker.image.rootfs.foreign.diff.tar")),
         "type");
  expect(one(config(R"({"Env":["NONE"]})", ids_), layer), "environment");
  expect(one(config(R"({"Env":["=x"]})", ids_), layer), "environment");
  expect(one(config(R"({"Env":["A=\u0000"]})", ids_), layer), "environment");
  expect(one(config(R"({"WorkingDir":"/\u0000"})", ids_), layer), "NUL");
  std::string layers = layer;
  std::string ids = ids_;
  for (int i = 0; i < isolation::kMostLayers; ++i) {
    layers += "," + layer;
    ids += "," + ids_;
  }
  expect(one(config("{}", ids), layers), "121 layers");
  fs::remove(temp_.path() / "index.json");
  EXPECT_EQ(layout_.read("amd64").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace cay::layers
