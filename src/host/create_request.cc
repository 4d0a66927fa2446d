#include "host/create_request.h"

#include <algorithm>
#include <cmath>

#include "base/ids.h"
#include "base/json.h"
#include "base/text.h"
#include "host/body_fields.h"
#include "layers/disk_image.h"

namespace cay::host {
namespace {

using isolation::Mode;
using isolation::Network;
using sandbox::PathRule;
using sandbox::PoolSpec;

constexpr uint64_t kMiB = 1 << 20;
constexpr double kMostCount = 10'000;
constexpr double kMostSeconds = 1e9;
constexpr double kMostMegabytes = 1 << 30;
constexpr double kMostPids = 4'194'304;  // more the kernel does not have
constexpr double kMostCpus = 4'096;
constexpr size_t kMostEnvBytes = 128 << 10;
constexpr size_t kMostLabels = 64;
constexpr size_t kMostLabelBytes = 1024;

constexpr std::string_view kKnown[] = {
    "count",     "env",  "idle_timeout_secs", "ttl_secs", "memory_mb", "max_mem_mb", "pids",
    "max_procs", "cpus", "disk_mb",           "network",  "image",     "paths",      "labels",
};

// A number that has two names.
Result<std::optional<double>> numberByEither(const json::Object& body, std::string_view name,
                                             std::string_view other, double high) {
  CAY_ASSIGN(const auto one, number(body, name, 0, high, Numbers::kWhole));
  CAY_ASSIGN(const auto two, number(body, other, 0, high, Numbers::kWhole));
  if (one && two && *one != *two) {
    return wrong(name, "and '" + std::string(other) + "' are the same, but their values differ");
  }
  return one ? one : two;
}

Result<> readLimits(const json::Object& body, isolation::Limits& limits) {
  CAY_ASSIGN(const auto memory, numberByEither(body, "memory_mb", "max_mem_mb", kMostMegabytes));
  if (memory) limits.memoryBytes = static_cast<uint64_t>(*memory) * kMiB;
  CAY_ASSIGN(const auto pids, numberByEither(body, "pids", "max_procs", kMostPids));
  if (pids) limits.pids = static_cast<uint64_t>(*pids);
  CAY_ASSIGN(const auto cpus, number(body, "cpus", 0, kMostCpus, Numbers::kAny));
  if (cpus) limits.milliCpus = static_cast<uint32_t>(std::ceil(*cpus * 1000));
  CAY_ASSIGN(const auto disk, number(body, "disk_mb", 0, kMostMegabytes, Numbers::kWhole));
  if (disk) limits.diskBytes = static_cast<uint64_t>(*disk) * kMiB;
  constexpr uint64_t kLeast = layers::DiskImages::kMinBytes;
  if (limits.diskBytes > 0 && limits.diskBytes < kLeast) {
    return wrongValue("disk_mb", "0 or at least " + std::to_string(kLeast / kMiB),
                      body.at("disk_mb"));
  }
  return {};
}

Result<int64_t> milliseconds(const json::Object& body, std::string_view name) {
  CAY_ASSIGN(const auto seconds, number(body, name, 0, kMostSeconds, Numbers::kAny));
  return static_cast<int64_t>(std::ceil(seconds.value_or(0) * 1000));
}

// One of two names.
template <typename Choice>
Result<> readChoice(const json::Object& body, std::string_view name,
                    std::string_view (*nameOf)(Choice), Choice one, Choice two, Choice& chosen) {
  const json::Value* value = field(body, name);
  if (value == nullptr) return {};
  for (const Choice choice : {one, two}) {
    if (value->is_string() && std::string_view(value->get_string()) == nameOf(choice)) {
      chosen = choice;
      return {};
    }
  }
  return wrongValue(
      name, "\"" + std::string(nameOf(one)) + "\" or \"" + std::string(nameOf(two)) + "\"", *value);
}

Result<> readLabels(const json::Object& body, PoolSpec& spec) {
  const json::Value* labels = field(body, "labels");
  if (labels == nullptr) return {};
  if (!labels->is_object() || labels->get_object().size() > kMostLabels) {
    return wrongValue("labels", "an object of at most 64 names and texts", *labels);
  }
  for (const auto& [name, value] : labels->get_object()) {
    const auto text = json::scalarText(value);
    if (!text || value.is_null() || name.empty() || name.size() + text->size() > kMostLabelBytes) {
      return wrongValue("labels", "an object of names and texts of at most 1024 bytes",
                        json::Object{{name, value}});
    }
    spec.labels.emplace_back(name, *text);
  }
  return {};
}

Result<> readSpec(const json::Object& body, PoolSpec& spec) {
  CAY_TRY(readEnvironment(body, spec.env));
  size_t envBytes = 0;
  for (const std::string& entry : spec.env) envBytes += entry.size();
  if (envBytes > kMostEnvBytes) return wrong("env", "must not have more than 128 KiB in all");
  CAY_ASSIGN(spec.idleTimeoutMs, milliseconds(body, "idle_timeout_secs"));
  CAY_ASSIGN(spec.ttlMs, milliseconds(body, "ttl_secs"));
  CAY_TRY(readLimits(body, spec.limits));
  CAY_TRY(readChoice(body, "network", sandbox::networkName, Network::kHost, Network::kNone,
                     spec.network));
  CAY_TRY(readChoice(body, "paths", sandbox::pathRuleName, PathRule::kHome, PathRule::kRoot,
                     spec.paths));
  if (const json::Value* image = field(body, "image")) {
    CAY_ASSIGN(spec.image, plainText(*image, "image"));
  }
  return readLabels(body, spec);
}

// What this machine cannot do for any sandbox.
Result<> checkPossible(const PoolSpec& spec, const CreateDefaults& here) {
  if (spec.limits.diskBytes > 0 && !here.whyNoDisks.empty()) {
    return fail(Code::kExhausted, "'disk_mb' cannot be had on this machine: " + here.whyNoDisks);
  }
  if (here.mode != Mode::kRestricted) return {};
  if (spec.paths == PathRule::kRoot) {
    return wrong("paths", "must be \"home\" here: without namespaces there is no other root");
  }
  if (spec.network == Network::kNone) {
    return fail(Code::kExhausted,
                "'network' \"none\" cannot be had on this machine: it has no "
                "namespaces");
  }
  return {};
}

}  // namespace

Result<ParsedCreate> parseCreate(std::string_view body, std::string_view key,
                                 const CreateDefaults& defaults) {
  CAY_ASSIGN(const json::Object object, bodyObject(body, /*mayBeEmpty=*/true));
  ParsedCreate parsed;
  parsed.request.spec.limits = defaults.limits;
  parsed.request.spec.env = defaults.env;
  parsed.request.spec.binds = defaults.binds;
  parsed.request.spec.devices = defaults.devices;
  CAY_ASSIGN(const auto count, number(object, "count", 1, kMostCount, Numbers::kWhole));
  parsed.request.count = static_cast<uint32_t>(count.value_or(1));
  CAY_TRY(readSpec(object, parsed.request.spec));
  CAY_TRY(checkPossible(parsed.request.spec, defaults));
  for (const auto& [name, value] : object) {
    if (std::ranges::find(kKnown, std::string_view(name)) == std::end(kKnown)) {
      parsed.ignored.emplace_back(name);
    }
  }
  if (!key.empty()) {
    parsed.request.key = key;
    parsed.request.fingerprint = fingerprint(body);
  }
  return parsed;
}

isolation::Limits defaultLimits(uint64_t memoryBytes) {
  constexpr uint64_t kUsualMemory = 2048 * kMiB;
  constexpr uint64_t kUsualPids = 1024;
  return {.memoryBytes = std::min(kUsualMemory, memoryBytes / 2), .pids = kUsualPids};
}

}  // namespace cay::host
