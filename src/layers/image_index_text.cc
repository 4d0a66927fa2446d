// The file of the index.
#include "base/json.h"
#include "base/text.h"
#include "layers/digest.h"
#include "layers/image_index.h"

namespace cay::layers {
namespace {

// To be raised whenever an older program would misread what is written.
constexpr int64_t kFormat = 1;

json::Array arrayOf(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& text : texts) out.emplace_back(toValidUtf8(text));
  return out;
}

std::vector<std::string> textsOf(const json::Value& value) {
  std::vector<std::string> out;
  for (const json::Value& text : value.as_array()) out.emplace_back(text.as_string());
  return out;
}

std::map<std::string, std::string> pairsOf(const json::Value& value) {
  std::map<std::string, std::string> out;
  for (const auto& [name, text] : value.as_object()) out[name] = text.as_string();
  return out;
}

StoredImage imageOf(std::string_view digest, const json::Object& object) {
  StoredImage image;
  image.digest = digest;
  image.layers = textsOf(object.at("layers"));
  image.blobs = textsOf(object.at("blobs"));
  image.config = {.env = textsOf(object.at("env")),
                  .cwd = std::string(object.at("cwd").as_string()),
                  .user = std::string(object.at("user").as_string())};
  image.bytes = static_cast<uint64_t>(object.at("bytes").as_int64());
  image.addedAtMs = object.at("added_at_ms").as_int64();
  return image;
}

}  // namespace

std::string ImageIndex::textOf(const Content& content) {
  json::Object images;
  for (const auto& [digest, image] : content.images) {
    images[digest] = json::Object{
        {"layers", arrayOf(image.layers)},        {"blobs", arrayOf(image.blobs)},
        {"env", arrayOf(image.config.env)},       {"cwd", toValidUtf8(image.config.cwd)},
        {"user", toValidUtf8(image.config.user)}, {"bytes", static_cast<int64_t>(image.bytes)},
        {"added_at_ms", image.addedAtMs}};
  }
  json::Object names;
  for (const auto& [name, digest] : content.names) names[name] = digest;
  json::Object aliases;
  for (const auto& [name, target] : content.aliases) aliases[name] = target;
  return json::serialize(json::Object{{"format", kFormat},
                                      {"images", std::move(images)},
                                      {"names", std::move(names)},
                                      {"aliases", std::move(aliases)}});
}

Result<ImageIndex::Content> ImageIndex::parse(std::string_view text) {
  CAY_ASSIGN(const json::Value parsed, json::parse(text));
  // Only this program writes it, so whatever is not as expected is damage of one kind.
  const auto damaged = [] { return fail(Code::kInternal, "the index of images is damaged"); };
  try {
    const json::Object& object = parsed.as_object();
    if (object.at("format").as_int64() != kFormat) {
      return fail(Code::kInternal, "the index of images is of another version of this program");
    }
    Content content;
    for (const auto& [digest, image] : object.at("images").as_object()) {
      StoredImage stored = imageOf(digest, image.as_object());
      for (const std::string& layer : stored.layers) {
        if (!isDigest(layer)) return damaged();
      }
      if (!isDigest(stored.digest)) return damaged();
      content.images[digest] = std::move(stored);
    }
    content.names = pairsOf(object.at("names"));
    content.aliases = pairsOf(object.at("aliases"));
    for (const auto& [name, digest] : content.names) {
      if (!content.images.contains(digest)) return damaged();
    }
    return content;
  } catch (const std::exception&) {
    return damaged();
  }
}

}  // namespace cay::layers
