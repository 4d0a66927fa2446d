#include "hub/job_fields.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "host/body_fields.h"

namespace cay::hub {
namespace {

using engine::Pairs;
using engine::VolumeRef;
using host::field;
using host::wrong;
using host::wrongValue;

// The kernel's own limit for one argument or variable, and somewhat less than a quarter of what it
// takes in all: command, arguments, environment and secrets go together.
constexpr size_t kMostTextBytes = (128 << 10) - 1;
constexpr size_t kMostBytes = 448 << 10;
constexpr size_t kMostTexts = 4096;
constexpr size_t kMostLabels = 64;
// More than the Hub's 100: names that clients make of images with a digest are longer.
constexpr size_t kMostLabelLetters = 256;
constexpr size_t kMostPorts = 64;
constexpr size_t kMostVolumes = 64;
constexpr size_t kMostPathBytes = 4095;
constexpr size_t kMostNameLetters = 96;
constexpr size_t kMostGroupLetters = 46;
constexpr size_t kMostAliasLetters = 34;
constexpr size_t kMostAliases = 16;

constexpr std::string_view kVolumeTypes[] = {"bucket", "model", "dataset", "space"};

bool isNameLetter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

// A label of a host name.
bool isHostLabel(std::string_view text, size_t most) {
  return !text.empty() && text.size() <= most && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

bool isBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// Absolute, without steps back or empty steps, and not over what a job's walls are made of.
bool isMountPath(std::string_view path) {
  if (!path.starts_with('/') || path == "/" || path.size() > kMostPathBytes) return false;
  const auto steps = split(path.substr(1), '/');
  if (std::ranges::any_of(steps, [](std::string_view step) {
        return step.empty() || step == "." || step == ".." || step.contains('\0');
      })) {
    return false;
  }
  for (const std::string_view kept : {"/proc", "/dev", "/sys"}) {
    if (isBelow(path, kept)) return false;
  }
  return path != "/etc" && path != "/etc/hosts" && path != "/etc/resolv.conf";
}

// Relative, without steps back.
bool isInnerPath(std::string_view path) {
  return path.size() <= kMostPathBytes &&
         std::ranges::none_of(split(path, '/'), [](std::string_view step) {
           return step.empty() || step == "." || step == ".." || step.contains('\0');
         });
}

Result<std::string> variableText(const json::Value& value) {
  if (value.is_object() || value.is_array()) return json::serialize(value);
  return json::scalarText(value);
}

// A field of a field: errors name both.
std::string inner(std::string_view outer, std::string_view name) {
  return std::string(outer) + "." + std::string(name);
}

Result<std::string> optionalText(const json::Object& object, std::string_view outer,
                                 std::string_view name) {
  const json::Value* value = field(object, name);
  if (value == nullptr) return std::string();
  return host::plainText(*value, inner(outer, name));
}

Result<std::vector<std::string>> textsOf(const json::Value& list, std::string_view name) {
  if (!list.is_array() || list.get_array().size() > kMostTexts) {
    return wrongValue(name, "a list of at most " + std::to_string(kMostTexts) + " strings", list);
  }
  std::vector<std::string> texts;
  size_t bytes = 0;
  for (const json::Value& value : list.get_array()) {
    CAY_ASSIGN(std::string text, host::plainText(value, name));
    bytes += text.size();
    if (text.size() > kMostTextBytes || bytes > kMostBytes) {
      return wrong(name, "must not have more than 128 KiB in one string and 448 KiB in all");
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

Result<std::vector<uint16_t>> readPorts(const json::Object& expose, std::string_view name) {
  std::vector<uint16_t> ports;
  const json::Value* list = field(expose, name);
  if (list == nullptr) return ports;
  const std::string full = inner("expose", name);
  if (!list->is_array() || list->get_array().size() > kMostPorts) {
    return wrongValue(full, "a list of at most " + std::to_string(kMostPorts) + " ports", *list);
  }
  for (const json::Value& value : list->get_array()) {
    const int64_t port = value.is_int64() ? value.get_int64() : 0;
    if (port < 1 || port > 65535) {
      return wrongValue(full, "a list of ports from 1 to 65535", *list);
    }
    if (std::ranges::find(ports, port) == ports.end()) {
      ports.push_back(static_cast<uint16_t>(port));
    }
  }
  return ports;
}

Result<VolumeRef> readVolume(const json::Value& value) {
  if (!value.is_object()) return wrongValue("volumes", "a list of objects", value);
  const json::Object& given = value.get_object();
  VolumeRef volume;
  CAY_ASSIGN(const std::string type, optionalText(given, "volumes", "type"));
  const auto* const known = std::ranges::find(kVolumeTypes, type);
  if (known == std::end(kVolumeTypes)) {
    return wrong("volumes",
                 "has a type that is none of bucket, model, dataset, space: " + quoted(type));
  }
  volume.type = static_cast<VolumeRef::Type>(known - std::begin(kVolumeTypes));
  CAY_ASSIGN(volume.source, optionalText(given, "volumes", "source"));
  if (!isRepository(volume.source)) {
    return wrong("volumes",
                 "has a source that is not of the form namespace/name: " + quoted(volume.source));
  }
  CAY_ASSIGN(volume.at, optionalText(given, "volumes", "mountPath"));
  if (volume.at.size() > 1 && volume.at.ends_with('/')) volume.at.pop_back();
  if (!isMountPath(volume.at)) {
    return wrong("volumes",
                 "has a mountPath that is not absolute and plain, or is part of the system: " +
                     quoted(volume.at));
  }
  CAY_ASSIGN(volume.path, optionalText(given, "volumes", "path"));
  if (volume.path.ends_with('/')) volume.path.pop_back();
  if (!volume.path.empty() && !isInnerPath(volume.path)) {
    return wrong("volumes", "has a path that is not relative and plain: " + quoted(volume.path));
  }
  CAY_ASSIGN(volume.revision, optionalText(given, "volumes", "revision"));
  if (!volume.revision.empty() && !isPlainName(volume.revision)) {
    return wrong("volumes",
                 "has a revision that cannot be the name of a folder: " + quoted(volume.revision));
  }
  if (const json::Value* readOnly = field(given, "readOnly")) {
    if (!readOnly->is_bool()) return wrongValue("volumes.readOnly", "true or false", *readOnly);
    volume.readOnly = readOnly->get_bool();
  }
  return volume;
}

}  // namespace

bool isPlainName(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameLetters && text != "." && text != ".." &&
         std::ranges::all_of(text, isNameLetter);
}

bool isRepository(std::string_view text) {
  const auto parts = split(text, '/');
  return parts.size() == 2 && isPlainName(parts[0]) && isPlainName(parts[1]);
}

std::string_view volumeTypeName(VolumeRef::Type type) {
  return kVolumeTypes[static_cast<size_t>(type)];
}

Result<std::vector<std::string>> readTexts(const json::Object& body, std::string_view name) {
  const json::Value* list = field(body, name);
  if (list == nullptr) return std::vector<std::string>();
  return textsOf(*list, name);
}

Result<Pairs> readVariables(const json::Object& body, std::string_view name) {
  Pairs variables;
  const json::Value* given = field(body, name);
  if (given == nullptr) return variables;
  if (!given->is_object() || given->get_object().size() > kMostTexts) {
    return wrong(
        name, "must be an object of at most " + std::to_string(kMostTexts) + " names and values");
  }
  size_t bytes = 0;
  for (const auto& [key, value] : given->get_object()) {
    const std::string_view variable = key;
    if (variable.empty() || variable.contains('=') || variable.contains('\0')) {
      return wrong(name, "has a name that is empty or holds '=' or NUL: " + quoted(variable));
    }
    CAY_ASSIGN(std::string text, variableText(value));
    if (text.contains('\0')) {
      return wrong(name, "value of " + quoted(variable) + " contains a NUL character");
    }
    bytes += variable.size() + text.size() + 1;
    if (variable.size() + text.size() + 1 > kMostTextBytes || bytes > kMostBytes) {
      return wrong(name, "must not have more than 128 KiB in one variable and 448 KiB in all");
    }
    variables.emplace_back(variable, std::move(text));
  }
  return variables;
}

Result<Pairs> readLabels(const json::Object& body) {
  Pairs labels;
  const json::Value* given = field(body, "labels");
  if (given == nullptr) return labels;
  if (!given->is_object() || given->get_object().size() > kMostLabels) {
    return wrong("labels", "must be an object of at most " + std::to_string(kMostLabels) +
                               " names and texts");
  }
  const auto isLabel = [](std::string_view text) {
    return text.size() <= kMostLabelLetters && std::ranges::all_of(text, isNameLetter);
  };
  for (const auto& [key, value] : given->get_object()) {
    const auto text = json::scalarText(value);
    if (!text || key.empty() || !isLabel(key) || !isLabel(*text)) {
      return wrong("labels", "must have names and values of at most " +
                                 std::to_string(kMostLabelLetters) +
                                 " letters, digits, '.', '_' and '-', unlike " +
                                 quoted(std::string(key) + "=" + text.value_or("(an object)")));
    }
    labels.emplace_back(key, *text);
  }
  return labels;
}

Result<Expose> readExpose(const json::Object& body) {
  const json::Value* given = field(body, "expose");
  if (given == nullptr) return Expose{};
  if (!given->is_object()) return wrongValue("expose", "an object with 'ports'", *given);
  Expose expose;
  CAY_ASSIGN(expose.all, readPorts(given->get_object(), "ports"));
  CAY_ASSIGN(expose.open, readPorts(given->get_object(), "portsPublic"));
  for (const uint16_t port : expose.open) {
    if (std::ranges::find(expose.all, port) == expose.all.end()) {
      return wrong("expose.portsPublic",
                   "has port " + std::to_string(port) + ", which is not in 'ports'");
    }
  }
  return expose;
}

Result<NetworkWish> readNetwork(const json::Object& body) {
  NetworkWish network;
  const json::Value* given = field(body, "network");
  if (given == nullptr) return network;
  if (!given->is_object()) return wrongValue("network", "an object with 'group'", *given);
  CAY_ASSIGN(network.group, optionalText(given->get_object(), "network", "group"));
  if (!isHostLabel(network.group, kMostGroupLetters)) {
    return wrong("network.group", "must be 1 to " + std::to_string(kMostGroupLetters) +
                                      " of a-z, 0-9 and inner '-', unlike " +
                                      quoted(network.group));
  }
  if (const json::Value* aliases = field(given->get_object(), "aliases")) {
    CAY_ASSIGN(network.aliases, textsOf(*aliases, "network.aliases"));
  }
  if (network.aliases.size() > kMostAliases) {
    return wrong("network.aliases", "must not be more than " + std::to_string(kMostAliases));
  }
  for (const std::string& alias : network.aliases) {
    if (!isHostLabel(alias, kMostAliasLetters)) {
      return wrong("network.aliases", "must be 1 to " + std::to_string(kMostAliasLetters) +
                                          " of a-z, 0-9 and inner '-', unlike " + quoted(alias));
    }
    if (std::ranges::count(network.aliases, alias) > 1) {
      return wrong("network.aliases", "has " + quoted(alias) + " twice");
    }
  }
  return network;
}

Result<std::vector<VolumeRef>> readVolumes(const json::Object& body) {
  std::vector<VolumeRef> volumes;
  const json::Value* given = field(body, "volumes");
  if (given == nullptr) return volumes;
  if (!given->is_array() || given->get_array().size() > kMostVolumes) {
    return wrongValue("volumes", "a list of at most " + std::to_string(kMostVolumes), *given);
  }
  for (const json::Value& value : given->get_array()) {
    CAY_ASSIGN(VolumeRef volume, readVolume(value));
    if (std::ranges::find(volumes, volume.at, &VolumeRef::at) != volumes.end()) {
      return wrong("volumes", "has two with the mountPath " + quoted(volume.at));
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

}  // namespace cay::hub
