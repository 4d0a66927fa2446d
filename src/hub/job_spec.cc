#include "hub/job_spec.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "engine/engine.h"
#include "host/body_fields.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

using engine::JobSpec;
using engine::Kind;
using engine::Pairs;
using engine::VolumeRef;
using host::field;
using host::number;
using host::Numbers;
using host::wrong;

constexpr double kMostSeconds = 10 * 366 * 86400.0;
constexpr double kUsualSeconds = 86400;
constexpr double kMostAttempts = 100;
constexpr uint32_t kMostCapacity = 10'000;
constexpr uint32_t kUsualCapacity = 50;
constexpr size_t kMostImageLetters = 512;
constexpr size_t kMostFlavorLetters = 64;

constexpr std::string_view kServerBucket = "huggingface/sbx-server";
// What the bootstrap script of clients wants to know; cay-host is told in its own way.
constexpr std::string_view kServerVariables[] = {
    "SBX_PORT",          "SBX_TOKEN",
    "SBX_IDLE_TIMEOUT",  "SBX_HOST_MODE",
    "SBX_CAPACITY",      "SBX_MAX_HOSTS",
    "SBX_SERVER_URL",    "SBX_SERVER_MOUNT",
    "SBX_SERVER_SHA256", "SBX_ALLOW_UNVERIFIED_SERVER",
};

const std::string* find(const Pairs& pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &Pairs::value_type::first);
  return found == pairs.end() ? nullptr : &found->second;
}

bool says(const Pairs& pairs, std::string_view name, std::string_view value) {
  const std::string* text = find(pairs, name);
  return text != nullptr && *text == value;
}

// A sandbox is a job whose command would download a server and run it.
Kind kindOf(const std::vector<std::string>& command, const Pairs& env, const Pairs& secrets,
            const Pairs& labels) {
  const std::string* token = find(secrets, "SBX_TOKEN");
  const bool script = command.size() == 3 && command[0] == "/bin/sh" && command[1] == "-c";
  if (!script || token == nullptr || token->empty() || !says(labels, "hf-sandbox", "1") ||
      find(env, "SBX_SERVER_URL") == nullptr) {
    return Kind::kPlain;
  }
  return says(env, "SBX_HOST_MODE", "1") ? Kind::kPool : Kind::kDedicated;
}

// The name of what it runs, "space:<id>" for a Space.
Result<std::string> readImage(const json::Object& body) {
  const json::Value* image = field(body, "dockerImage");
  const json::Value* space = field(body, "spaceId");
  if ((image == nullptr) == (space == nullptr)) {
    return fail(Code::kInvalid, "one of 'dockerImage' and 'spaceId' must be given, not both");
  }
  if (space != nullptr) {
    CAY_ASSIGN(const std::string id, host::plainText(*space, "spaceId"));
    if (!isRepository(id)) return wrong("spaceId", "must be of the form namespace/name");
    return "space:" + id;
  }
  CAY_ASSIGN(std::string name, host::plainText(*image, "dockerImage"));
  const bool plain = std::ranges::all_of(name, [](char c) { return c > ' ' && c < 0x7f; });
  if (name.empty() || name.size() > kMostImageLetters || !plain || name.starts_with("space:")) {
    return wrong("dockerImage", "is not the name of an image: " + quoted(name));
  }
  return name;
}

Result<std::string> readFlavor(const json::Object& body) {
  const json::Value* given = field(body, "flavor");
  if (given == nullptr) return "cpu-basic";
  CAY_ASSIGN(std::string flavor, host::plainText(*given, "flavor"));
  if (flavor.empty() || flavor.size() > kMostFlavorLetters) {
    return wrong("flavor", "is not the name of one: " + quoted(flavor));
  }
  return flavor;
}

Result<> refuseSsh(const json::Object& body) {
  const json::Value* ssh = field(body, "ssh");
  if (ssh == nullptr) return {};
  if (!ssh->is_object()) return host::wrongValue("ssh", "an object with 'enabled'", *ssh);
  const json::Value* enabled = field(ssh->get_object(), "enabled");
  if (enabled == nullptr || (enabled->is_bool() && !enabled->get_bool())) return {};
  return wrong("ssh", "is not there: jobs of this hub are reached by their exposed ports");
}

// What both the first reading of a body and every later one of its stored form understand.
struct Fields {
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> arguments;
  Pairs env;
  std::string flavor;
  int64_t timeoutMs = 0;
  uint32_t attempts = 1;
  std::vector<VolumeRef> volumes;
  NetworkWish network;
  std::string resourceGroup;
};

Result<Fields> readFields(const json::Object& body) {
  Fields fields;
  CAY_ASSIGN(fields.image, readImage(body));
  CAY_ASSIGN(fields.command, readTexts(body, "command"));
  CAY_ASSIGN(fields.arguments, readTexts(body, "arguments"));
  if (fields.command.empty() && fields.arguments.empty()) {
    return wrong("command", "must be a list of at least one string");
  }
  CAY_ASSIGN(fields.env, readVariables(body, "environment"));
  CAY_ASSIGN(fields.flavor, readFlavor(body));
  CAY_ASSIGN(const auto seconds, number(body, "timeoutSeconds", 1, kMostSeconds, Numbers::kAny));
  fields.timeoutMs = static_cast<int64_t>(std::ceil(seconds.value_or(kUsualSeconds) * 1000));
  CAY_ASSIGN(const auto attempts, number(body, "attempts", 1, kMostAttempts, Numbers::kWhole));
  fields.attempts = static_cast<uint32_t>(attempts.value_or(1));
  CAY_ASSIGN(fields.volumes, readVolumes(body));
  CAY_ASSIGN(fields.network, readNetwork(body));
  if (const json::Value* group = field(body, "resourceGroupId")) {
    CAY_ASSIGN(fields.resourceGroup, host::plainText(*group, "resourceGroupId"));
    if (!isPlainName(fields.resourceGroup)) {
      return wrong("resourceGroupId", "is not one: " + quoted(fields.resourceGroup));
    }
  }
  return fields;
}

// Those of the fields that were given, as they were.
json::Object copyFields(const json::Object& from, std::initializer_list<std::string_view> names) {
  json::Object out;
  for (const std::string_view name : names) {
    if (const json::Value* value = field(from, name)) out[name] = *value;
  }
  return out;
}

json::Object pairsJson(const Pairs& pairs) {
  json::Object out;
  for (const auto& [name, value] : pairs) out.insert_or_assign(name, value);
  return out;
}

json::Array textsJson(const std::vector<std::string>& texts) {
  return json::Array(texts.begin(), texts.end());
}

// The body in one form: every field with its type, whoever sent it.
json::Object specJson(const Fields& fields, const JobWish& wish, const json::Object& body) {
  json::Object out = copyFields(body, {"dockerImage", "spaceId", "resourceGroupId"});
  out["command"] = textsJson(fields.command);
  out["arguments"] = textsJson(fields.arguments);
  out["environment"] = pairsJson(fields.env);
  out["flavor"] = fields.flavor;
  out["timeoutSeconds"] = static_cast<double>(fields.timeoutMs) / 1000;
  if (fields.timeoutMs % 1000 == 0) out["timeoutSeconds"] = fields.timeoutMs / 1000;
  out["attempts"] = fields.attempts;
  out["labels"] = pairsJson(wish.labels);
  json::Array volumes;
  if (const json::Value* given = field(body, "volumes")) {
    for (const json::Value& volume : given->get_array()) {
      volumes.push_back(copyFields(
          volume.get_object(), {"type", "source", "mountPath", "revision", "readOnly", "path"}));
    }
  }
  out["volumes"] = std::move(volumes);
  if (!wish.expose.all.empty()) {
    const auto& [all, open] = wish.expose;
    out["expose"] = json::Object{{"ports", json::Array(all.begin(), all.end())},
                                 {"portsPublic", json::Array(open.begin(), open.end())}};
  }
  if (!fields.network.group.empty()) {
    out["network"] = json::Object{{"group", fields.network.group},
                                  {"aliases", textsJson(fields.network.aliases)}};
  }
  return out;
}

// How long it may wait, from its label; 0: for ever.
Result<int64_t> waitMs(const Pairs& labels) {
  const std::string* text = find(labels, kDeadlineLabel);
  if (text == nullptr) return 0;
  const auto duration = parseDurationMs(*text);
  if (!duration || *duration <= 0) {
    return wrong("labels", "has a " + std::string(kDeadlineLabel) +
                               " that is no duration like 90s, 10m or 2h: " + quoted(*text));
  }
  return *duration;
}

Result<engine::SandboxServer> serverOf(Kind kind, const Pairs& env, const Pairs& secrets) {
  engine::SandboxServer server;
  if (kind == Kind::kPlain) return server;
  const std::string* token = find(secrets, "SBX_TOKEN");
  if (token == nullptr) return wrong("secrets", "must have the SBX_TOKEN of a sandbox");
  server.token = *token;
  // Clients that pin no server speak the first protocol, with the host's token everywhere.
  server.compatHostToken = find(env, "SBX_SERVER_SHA256") == nullptr;
  if (const std::string* idle = find(env, "SBX_IDLE_TIMEOUT")) {
    const auto duration = parseDurationMs(*idle);
    if (!duration) {
      return wrong("environment",
                   "has an SBX_IDLE_TIMEOUT that is no number of seconds: " + quoted(*idle));
    }
    server.idleTimeoutMs = *duration;
  }
  if (kind != Kind::kPool) return server;
  server.capacity = kUsualCapacity;
  if (const std::string* capacity = find(env, "SBX_CAPACITY")) {
    const auto most = parseUint(*capacity);
    if (!most || *most < 1 || *most > kMostCapacity) {
      return wrong("environment", "has an SBX_CAPACITY that is not a number from 1 to " +
                                      std::to_string(kMostCapacity) + ": " + quoted(*capacity));
    }
    server.capacity = static_cast<uint32_t>(*most);
  }
  return server;
}

// What is for the bootstrap script does not enter a sandbox.
void dropServerParts(JobSpec& spec) {
  for (Pairs* pairs : {&spec.env, &spec.secrets}) {
    std::erase_if(*pairs, [](const auto& variable) {
      return std::ranges::find(kServerVariables, variable.first) != std::end(kServerVariables);
    });
  }
  std::erase_if(spec.volumes, [](const VolumeRef& volume) {
    return volume.type == VolumeRef::Type::kBucket && volume.source == kServerBucket;
  });
}

}  // namespace

Result<JobWish> parseJobWish(const json::Object& body) {
  CAY_TRY(refuseSsh(body));
  CAY_ASSIGN(const Fields fields, readFields(body));
  JobWish wish;
  CAY_ASSIGN(const Pairs secrets, readVariables(body, "secrets"));
  CAY_ASSIGN(wish.labels, readLabels(body));
  CAY_ASSIGN(wish.expose, readExpose(body));
  CAY_TRY(waitMs(wish.labels));
  wish.kind = kindOf(fields.command, fields.env, secrets, wish.labels);
  CAY_TRY(serverOf(wish.kind, fields.env, secrets));
  if (wish.kind != Kind::kPlain &&
      std::ranges::find(wish.expose.open, engine::kSandboxPort) != wish.expose.open.end()) {
    return wrong("expose.portsPublic", "cannot have the port of a sandbox's server");
  }
  wish.spec = json::serialize(specJson(fields, wish, body));
  wish.secrets = pairsText(secrets);
  return wish;
}

Result<JobSpec> jobSpecOf(const JobRow& row) {
  CAY_ASSIGN(const json::Object body, host::bodyObject(row.spec));
  CAY_ASSIGN(Fields fields, readFields(body));
  JobSpec spec;
  spec.id = row.id;
  spec.ns = row.ns;
  spec.kind = row.kind;
  spec.image = std::move(fields.image);
  spec.command = std::move(fields.command);
  std::ranges::move(fields.arguments, std::back_inserter(spec.command));
  spec.env = std::move(fields.env);
  CAY_ASSIGN(spec.secrets, parsePairs(row.secrets, "secrets"));
  spec.labels = row.labels;
  spec.flavor = std::move(fields.flavor);
  spec.timeoutMs = fields.timeoutMs;
  spec.attempts = fields.attempts;
  spec.groupName = fields.network.group;
  if (!spec.groupName.empty()) {
    spec.group = row.ns + "/" + fields.resourceGroup + "/" + spec.groupName;
  }
  spec.aliases = std::move(fields.network.aliases);
  spec.volumes = std::move(fields.volumes);
  for (VolumeRef& volume : spec.volumes) {
    volume.readOnly = volume.readOnly || volume.type != VolumeRef::Type::kBucket;
  }
  // By the labels that it was made with: later ones change nothing about how it runs.
  CAY_ASSIGN(const Pairs labels, readLabels(body));
  CAY_ASSIGN(const int64_t wait, waitMs(labels));
  if (wait > 0) spec.deadlineMs = row.createdMs + wait;
  CAY_ASSIGN(spec.server, serverOf(spec.kind, spec.env, spec.secrets));
  if (spec.kind != Kind::kPlain) dropServerParts(spec);
  return spec;
}

}  // namespace cay::hub
