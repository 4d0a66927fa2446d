#include "layers/oci_layout.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "isolation/stage.h"
#include "layers/digest.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::layers {
namespace {

constexpr size_t kMaxManifests = 1000;
constexpr size_t kMaxEnv = 10'000;
constexpr int kMaxNesting = 2;  // an index of an index

constexpr std::array kIndexTypes =
    std::to_array<std::string_view>({"application/vnd.oci.image.index.v1+json",
                                     "application/vnd.docker.distribution.manifest.list.v2+json"});
constexpr std::array kLayerTypes = std::to_array<std::string_view>(
    {"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
     "application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.docker.image.rootfs.diff.tar",
     "application/vnd.docker.image.rootfs.diff.tar.gzip",
     "application/vnd.docker.image.rootfs.diff.tar.zstd"});

std::unexpected<Error> bad(std::string what) {
  return fail(Code::kInvalid, "bad image: " + std::move(what));
}

// Empty for what is not there or no text.
std::string textOf(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

const json::Array& arrayOf(const json::Object& object, std::string_view name) {
  static const json::Array kNone;
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

const json::Object& objectOf(const json::Object& object, std::string_view name) {
  static const json::Object kNone;
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

Result<json::Object> parseObject(const std::string& text, const char* what) {
  auto parsed = json::parse(text);
  if (!parsed) return bad(std::string(what) + ": " + parsed.error().message);
  if (!parsed->is_object()) return bad(std::string(what) + " is no object");
  return std::move(parsed->get_object());
}

struct Descriptor {
  std::string type;
  std::string digest;
  uint64_t size = 0;
  std::string os;  // both empty if it does not say
  std::string architecture;
};

Result<Descriptor> descriptorOf(const json::Value& value) {
  if (!value.is_object()) return bad("a descriptor is no object");
  const json::Object& object = value.get_object();
  Descriptor found;
  found.type = textOf(object, "mediaType");
  found.digest = textOf(object, "digest");
  if (!isDigest(found.digest)) return bad("a digest is none: " + quoted(found.digest));
  const json::Value* size = object.if_contains("size");
  if (size == nullptr || !size->is_int64() || size->get_int64() < 0) {
    return bad("the size of " + found.digest + " is missing");
  }
  found.size = static_cast<uint64_t>(size->get_int64());
  const json::Object& platform = objectOf(object, "platform");
  found.os = textOf(platform, "os");
  found.architecture = textOf(platform, "architecture");
  return found;
}

// One that does not say is taken only where there is no other choice.
Result<Descriptor> choose(const json::Object& index, std::string_view architecture) {
  const json::Array& manifests = arrayOf(index, "manifests");
  if (manifests.empty()) return bad("its index names no manifest");
  if (manifests.size() > kMaxManifests) return bad("its index names too many manifests");
  std::string others;
  for (const json::Value& value : manifests) {
    CAY_ASSIGN(Descriptor found, descriptorOf(value));
    const bool saysNothing = found.os.empty() && found.architecture.empty();
    if (saysNothing && manifests.size() == 1) return found;
    if (found.os == "linux" && found.architecture == architecture) return found;
    others.append(others.empty() ? "" : ", ").append(found.os + "/" + found.architecture);
  }
  return bad("it is not for linux/" + std::string(architecture) + ", but for " + quoted(others));
}

Result<ImageConfig> settingsOf(const json::Object& config) {
  const json::Object& settings = objectOf(config, "config");
  ImageConfig found;
  const json::Array& env = arrayOf(settings, "Env");
  if (env.size() > kMaxEnv) return bad("its environment is too large");
  for (const json::Value& value : env) {
    const std::string entry = value.is_string() ? std::string(value.get_string()) : "";
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || equals == 0 || entry.contains('\0')) {
      return bad("its environment has " + quoted(entry));
    }
    found.env.push_back(entry);
  }
  found.user = textOf(settings, "User");
  const std::string cwd = textOf(settings, "WorkingDir");
  if (cwd.contains('\0') || found.user.contains('\0')) return bad("a name contains a NUL byte");
  if (!cwd.empty()) found.cwd = cwd.starts_with('/') ? cwd : "/" + cwd;
  return found;
}

Result<> requirePlatform(const json::Object& config, std::string_view architecture) {
  const std::string os = textOf(config, "os");
  const std::string has = textOf(config, "architecture");
  if (os == "linux" && has == architecture) return {};
  return bad("it is for " + quoted(os + "/" + has) + ", and this machine is linux/" +
             std::string(architecture));
}

Result<std::vector<OciLayer>> layersOf(const json::Object& manifest, const json::Object& config) {
  const json::Array& blobs = arrayOf(manifest, "layers");
  const json::Array& diffIds = arrayOf(objectOf(config, "rootfs"), "diff_ids");
  if (blobs.empty()) return bad("it has no layers");
  if (blobs.size() > isolation::kMostLayers) {
    return bad("it has " + std::to_string(blobs.size()) + " layers; at most " +
               std::to_string(isolation::kMostLayers) + " can be stacked here");
  }
  if (blobs.size() != diffIds.size()) return bad("its layers and their digests do not match");
  std::vector<OciLayer> layers;
  for (size_t i = 0; i < blobs.size(); ++i) {
    CAY_ASSIGN(Descriptor blob, descriptorOf(blobs[i]));
    if (std::ranges::find(kLayerTypes, blob.type) == kLayerTypes.end()) {
      return bad("it has a layer of the type " + quoted(blob.type));
    }
    std::string diffId = diffIds[i].is_string() ? std::string(diffIds[i].get_string()) : "";
    if (!isDigest(diffId)) return bad("a digest is none: " + quoted(diffId));
    layers.push_back({std::move(blob.digest), blob.size, std::move(diffId)});
  }
  return layers;
}

}  // namespace

std::string_view machineArchitecture() {
#if defined(__aarch64__)
  return "arm64";
#else
  return "amd64";
#endif
}

std::string OciLayout::blobPath(std::string_view digest) const {
  return blobs_ + "/sha256/" + std::string(digestHex(digest));
}

Result<Fd> OciLayout::openVerified(std::string_view digest, uint64_t size) const {
  auto blob = sys::openAt(AT_FDCWD, blobPath(digest).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!blob) return std::unexpected(std::move(blob).error().wrap("blob " + std::string(digest)));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(blob->get()));
  if (!S_ISREG(stat.st_mode) || static_cast<uint64_t>(stat.st_size) != size) {
    return bad("the blob " + std::string(digest) + " is not of the size that its image says");
  }
  CAY_ASSIGN(const std::string found, digestOfFile(blob->get()));
  if (found != digest) {
    return bad("the blob " + std::string(digest) + " is damaged: its digest is " + found);
  }
  if (::lseek(blob->get(), 0, SEEK_SET) != 0) return failSys("lseek", errno);
  return *std::move(blob);
}

Result<std::string> OciLayout::document(std::string_view digest, uint64_t size) const {
  if (size > kMaxDocument) return bad("the document " + std::string(digest) + " is too large");
  CAY_ASSIGN(const Fd blob, openVerified(digest, size));
  return sys::readFile(sys::fdPath(blob.get()).c_str(), kMaxDocument);
}

Result<OciImage> OciLayout::read(std::string_view architecture) const {
  auto text = sys::readFile((folder_ + "/index.json").c_str(), kMaxDocument);
  if (!text) return std::unexpected(std::move(text).error().wrap("not an image layout"));
  Descriptor chosen;
  for (int nesting = 0;; ++nesting) {
    CAY_ASSIGN(const json::Object index, parseObject(*text, "its index"));
    CAY_ASSIGN(chosen, choose(index, architecture));
    CAY_ASSIGN(*text, document(chosen.digest, chosen.size));
    if (std::ranges::find(kIndexTypes, chosen.type) == kIndexTypes.end()) break;
    if (nesting == kMaxNesting) return bad("its index is nested too deep");
  }
  CAY_ASSIGN(const json::Object manifest, parseObject(*text, "its manifest"));
  const json::Value* configField = manifest.if_contains("config");
  if (configField == nullptr) return bad("its manifest names no configuration");
  CAY_ASSIGN(const Descriptor configAt, descriptorOf(*configField));
  CAY_ASSIGN(const std::string configText, document(configAt.digest, configAt.size));
  CAY_ASSIGN(const json::Object config, parseObject(configText, "its configuration"));
  CAY_TRY(requirePlatform(config, architecture));
  OciImage image;
  image.digest = chosen.digest;
  image.configDigest = configAt.digest;
  CAY_ASSIGN(image.layers, layersOf(manifest, config));
  CAY_ASSIGN(image.config, settingsOf(config));
  return image;
}

}  // namespace cay::layers
