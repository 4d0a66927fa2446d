#include "hub/job_info.h"

#include <algorithm>

#include "base/dates.h"
#include "base/sha256.h"
#include "base/text.h"
#include "hub/edge_name.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

constexpr size_t kIdDigits = 24;
constexpr std::string_view kKinds[] = {"job", "sandbox", "pool"};

json::Value dateOf(int64_t ms) {
  if (ms == 0) return nullptr;
  return json::Value(isoDate(ms * 1000, Fraction::kMillis));
}

// Whole seconds between two times; null if one of them has not come. A clock that was set back
// makes no negative ones.
json::Value secondsBetween(int64_t fromMs, int64_t toMs) {
  if (fromMs == 0 || toMs == 0) return nullptr;
  return std::max<int64_t>(0, toMs - fromMs) / 1000;
}

json::Object durations(const JobRow& row, int64_t nowMs) {
  const int64_t end = row.finishedMs != 0 ? row.finishedMs : nowMs;
  return {{"schedulingSecs", secondsBetween(row.createdMs, row.startedMs)},
          {"runningSecs", secondsBetween(row.startedMs, end)},
          {"totalSecs", secondsBetween(row.createdMs, end)}};
}

json::Object statusOf(const JobRow& row, const EdgeAddress& edge) {
  json::Object status{{"stage", engine::stageName(row.stage)}, {"message", nullptr}};
  if (!row.message.empty()) status["message"] = toValidUtf8(row.message);
  if (row.ports.empty()) return status;
  json::Array urls;
  for (const uint16_t port : row.ports) {
    urls.emplace_back(edgeUrl({.job = row.id, .port = port}, edge.domain, edge.tlsPort));
  }
  status["exposeUrls"] = std::move(urls);
  return status;
}

json::Value exposeOf(const JobRow& row) {
  if (row.ports.empty()) return nullptr;
  return json::Object{{"ports", json::Array(row.ports.begin(), row.ports.end())},
                      {"portsPublic", json::Array(row.publicPorts.begin(), row.publicPorts.end())}};
}

json::Object initiatorOf(const JobRow& row) {
  json::Object initiator{{"type", row.initiatorType}, {"id", row.initiatorId}};
  if (!row.initiatorName.empty()) initiator["name"] = row.initiatorName;
  return initiator;
}

json::Object namesOf(const engine::Pairs& secrets) {
  json::Object names;
  for (const auto& [name, value] : secrets) names[name] = nullptr;
  return names;
}

// What is ours to tell, in a place that no client looks at.
json::Object ownWords(const JobRow& row, const json::Object& environment) {
  json::Object own{{"kind", kKinds[static_cast<size_t>(row.kind)]}, {"attempt", row.attempt}};
  if (!row.image.empty()) own["image"] = toValidUtf8(row.image);
  if (row.kind != engine::Kind::kPlain) {
    own["served"] = "cay-host";  // in place of the command
    own["compat"] = !environment.contains("SBX_SERVER_SHA256");
  }
  json::Array& notes = own["notes"].emplace_array();
  for (const std::string& note : row.notes) notes.emplace_back(toValidUtf8(note));
  return own;
}

}  // namespace

PrincipalRow ownerOf(std::string_view ns, const std::vector<PrincipalRow>& principals) {
  const auto found = std::ranges::find(principals, ns, &PrincipalRow::name);
  if (found != principals.end()) return *found;
  return {.id = sha256Hex(ns).substr(0, kIdDigits), .name = std::string(ns), .type = "org"};
}

Result<json::Object> jobInfo(const JobRow& row, const PrincipalRow& owner, const EdgeAddress& edge,
                             int64_t nowMs) {
  auto parsed = json::parse(row.spec);
  if (!parsed || !parsed->is_object()) return brokenRow("spec");
  json::Object& spec = parsed->get_object();
  const json::Value* environment = spec.if_contains("environment");
  const json::Value* attempts = spec.if_contains("attempts");
  if (environment == nullptr || !environment->is_object() || attempts == nullptr ||
      !attempts->is_int64()) {
    return brokenRow("spec");
  }
  CAY_ASSIGN(const engine::Pairs secrets, parsePairs(row.secrets, "secrets"));

  // Never "endpoint": clients pass it on as an argument of their own.
  json::Object info{{"id", row.id},
                    {"createdAt", dateOf(row.createdMs)},
                    {"startedAt", dateOf(row.startedMs)},
                    {"finishedAt", dateOf(row.finishedMs)},
                    {"secrets", namesOf(secrets)},
                    {"status", statusOf(row, edge)},
                    {"durations", durations(row, nowMs)},
                    {"owner", {{"id", owner.id}, {"name", owner.name}, {"type", owner.type}}},
                    // Pools use only hosts whose initiator has the id that whoami tells.
                    {"initiator", initiatorOf(row)},
                    {"network", nullptr},
                    {"retry", attempts->get_int64() - 1},
                    {"expose", exposeOf(row)},
                    {"cay", ownWords(row, environment->get_object())}};
  json::Object& labels = info["labels"].emplace_object();
  for (const auto& [name, value] : row.labels) labels.insert_or_assign(name, value);
  // Verbatim, since pools compare command, image and flavor with their own.
  for (const char* field : {"dockerImage", "spaceId", "command", "arguments", "environment",
                            "flavor", "volumes", "network", "timeoutSeconds"}) {
    if (json::Value* value = spec.if_contains(field)) info[field] = std::move(*value);
  }
  return info;
}

}  // namespace cay::hub
