// The fields of a job's request, one by one. Errors are kInvalid and name the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/job.h"

namespace cay::hub {

// Ports that are reached through the edge, each once; `open` is a part of `all`.
struct Expose {
  std::vector<uint16_t> all;
  std::vector<uint16_t> open;  // without a token
};

struct NetworkWish {
  std::string group;  // empty: alone
  std::vector<std::string> aliases;
};

// A missing or null field is an empty list.
Result<std::vector<std::string>> readTexts(const json::Object& body, std::string_view name);
// Variables, whose values clients send as whatever they are: true and 1 become their texts, null
// nothing, objects and lists their JSON.
Result<engine::Pairs> readVariables(const json::Object& body, std::string_view name);
Result<engine::Pairs> readLabels(const json::Object& body);
Result<Expose> readExpose(const json::Object& body);
Result<NetworkWish> readNetwork(const json::Object& body);
Result<std::vector<engine::VolumeRef>> readVolumes(const json::Object& body);
// Letters, digits, '.', '_', '-', and neither "." nor "..": good as the name of a file of ours.
bool isPlainName(std::string_view text);
// "namespace/name" of such names.
bool isRepository(std::string_view text);

std::string_view volumeTypeName(engine::VolumeRef::Type type);

}  // namespace cay::hub
