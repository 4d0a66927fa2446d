#include "sandbox/pool_record.h"

#include <algorithm>

#include "base/ids.h"
#include "base/json.h"

namespace cay::sandbox {
namespace {

using isolation::Mode;
using isolation::Network;

// Reads fields one by one and remembers the first that is missing or of another kind.
class FieldReader {
 public:
  explicit FieldReader(const json::Object& object) : object_(object) {}

  [[nodiscard]] bool has(const char* name) const { return find(name) != nullptr; }
  std::string text(const char* name) {
    const json::Value* value = find(name);
    if (value != nullptr && value->is_string()) return std::string(value->get_string());
    broken(name);
    return {};
  }
  int64_t number(const char* name) {
    const json::Value* value = find(name);
    if (value != nullptr && value->is_int64()) return value->get_int64();
    broken(name);
    return 0;
  }
  bool flag(const char* name) {
    const json::Value* value = find(name);
    if (value != nullptr && value->is_bool()) return value->get_bool();
    broken(name);
    return false;
  }
  std::vector<std::string> texts(const char* name) {
    std::vector<std::string> out;
    const json::Value* value = find(name);
    const json::Array* entries = value == nullptr ? nullptr : value->if_array();
    if (entries == nullptr) broken(name);
    for (const json::Value& entry : entries == nullptr ? json::Array() : *entries) {
      if (entry.is_string()) {
        out.emplace_back(entry.get_string());
      } else {
        broken(name);
      }
    }
    return out;
  }
  template <typename Enum>
  Enum oneOf(const char* name, std::string_view (*nameOf)(Enum), std::initializer_list<Enum> all) {
    const std::string chosen = text(name);
    for (const Enum value : all) {
      if (nameOf(value) == chosen) return value;
    }
    broken(name);
    return *all.begin();
  }
  const json::Value& any(const char* name) {
    static const json::Value kNone;
    const json::Value* value = find(name);
    if (value == nullptr) broken(name);
    return value == nullptr ? kNone : *value;
  }

  [[nodiscard]] Result<> outcome() const {
    if (broken_.empty()) return {};
    return fail(Code::kInternal, "the record's field '" + broken_ + "' is missing or broken");
  }

 private:
  const json::Value* find(const char* name) const { return object_.if_contains(name); }
  void broken(const char* name) {
    if (broken_.empty()) broken_ = name;
  }

  const json::Object& object_;
  std::string broken_;
};

json::Array textArray(const std::vector<std::string>& texts) {
  json::Array out;
  for (const std::string& entry : texts) out.emplace_back(entry);
  return out;
}

json::Array bindArray(const std::vector<isolation::Bind>& binds) {
  json::Array out;
  for (const isolation::Bind& bind : binds) {
    out.emplace_back(json::Object{{"source", bind.source},
                                  {"at", bind.at},
                                  {"read_only", bind.readOnly},
                                  {"is_file", bind.isFile}});
  }
  return out;
}

Result<std::vector<isolation::Bind>> readBinds(const json::Value& value) {
  std::vector<isolation::Bind> binds;
  if (!value.is_array()) return fail(Code::kInternal, "the record's field 'binds' is broken");
  for (const json::Value& entry : value.get_array()) {
    if (!entry.is_object()) return fail(Code::kInternal, "the record's field 'binds' is broken");
    FieldReader in(entry.get_object());
    binds.push_back({.source = in.text("source"),
                     .at = in.text("at"),
                     .readOnly = in.flag("read_only"),
                     .isFile = in.flag("is_file")});
    CAY_TRY(in.outcome());
  }
  return binds;
}

json::Object labelObject(const PoolSpec& spec) {
  json::Object out;
  for (const auto& [name, value] : spec.labels) out[name] = value;
  return out;
}

}  // namespace

bool isGivenId(std::string_view id) {
  return !id.empty() && id.size() <= kMostIdBytes && std::ranges::all_of(id, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

std::string_view networkName(Network network) {
  switch (network) {
    case Network::kHost:
      return "host";
    case Network::kNone:
      return "none";
    case Network::kGiven:
      return "given";
  }
  return "unknown";
}

std::string_view pathRuleName(PathRule rule) {
  return rule == PathRule::kHome ? "home" : "root";
}

std::string_view modeName(Mode mode) {
  switch (mode) {
    case Mode::kFull:
      return "full";
    case Mode::kUnprivileged:
      return "unprivileged";
    case Mode::kRestricted:
      return "restricted";
  }
  return "unknown";
}

std::string recordText(const PoolRecord& record) {
  const PoolSpec& spec = *record.spec;
  json::Object out;
  out["id"] = record.id;
  out["token"] = record.token;
  out["mode"] = modeName(record.mode);
  out["slot"] = int64_t{record.slot};
  out["created_at_ms"] = record.createdAtMs;
  out["image"] = spec.image;
  out["image_version"] = record.imageVersion;
  out["env"] = textArray(spec.env);
  out["idle_timeout_ms"] = spec.idleTimeoutMs;
  out["ttl_ms"] = spec.ttlMs;
  out["memory_bytes"] = static_cast<int64_t>(spec.limits.memoryBytes);
  out["pids"] = static_cast<int64_t>(spec.limits.pids);
  out["milli_cpus"] = int64_t{spec.limits.milliCpus};
  out["disk_bytes"] = static_cast<int64_t>(spec.limits.diskBytes);
  out["network"] = networkName(spec.network);
  out["paths"] = pathRuleName(spec.paths);
  out["labels"] = labelObject(spec);
  out["binds"] = bindArray(spec.binds);
  out["devices"] = textArray(spec.devices);
  out["lifetime_ms"] = spec.lifetimeMs;
  out["stays"] = spec.stays;
  out["key"] = record.key;
  out["fingerprint"] = record.fingerprint;
  out["index"] = int64_t{record.index};
  out["rejected"] = int64_t{record.rejected};
  return json::serialize(out);
}

Result<PoolRecord> parseRecord(std::string_view text) {
  CAY_ASSIGN(const json::Value parsed, json::parse(text));
  if (!parsed.is_object()) return fail(Code::kInternal, "the record is not an object");
  FieldReader in(parsed.get_object());
  PoolRecord record;
  auto spec = std::make_shared<PoolSpec>();
  record.id = in.text("id");
  record.token = in.text("token");
  record.mode = in.oneOf("mode", modeName, {Mode::kFull, Mode::kUnprivileged, Mode::kRestricted});
  record.slot = static_cast<uint32_t>(in.number("slot"));
  record.createdAtMs = in.number("created_at_ms");
  spec->image = in.text("image");
  record.imageVersion = in.text("image_version");
  spec->idleTimeoutMs = in.number("idle_timeout_ms");
  spec->ttlMs = in.number("ttl_ms");
  spec->limits = {.memoryBytes = static_cast<uint64_t>(in.number("memory_bytes")),
                  .pids = static_cast<uint64_t>(in.number("pids")),
                  .milliCpus = static_cast<uint32_t>(in.number("milli_cpus")),
                  .diskBytes = static_cast<uint64_t>(in.number("disk_bytes"))};
  spec->network =
      in.oneOf("network", networkName, {Network::kHost, Network::kNone, Network::kGiven});
  spec->paths = in.oneOf("paths", pathRuleName, {PathRule::kHome, PathRule::kRoot});
  spec->env = in.texts("env");
  if (const json::Value& labels = in.any("labels"); labels.is_object()) {
    for (const auto& [name, value] : labels.get_object()) {
      if (value.is_string()) spec->labels.emplace_back(name, value.get_string());
    }
  }
  if (in.has("binds")) {  // not in records of older hosts
    CAY_ASSIGN(spec->binds, readBinds(in.any("binds")));
    spec->lifetimeMs = in.number("lifetime_ms");
    spec->stays = in.flag("stays");
  }
  if (in.has("devices")) spec->devices = in.texts("devices");
  record.key = in.text("key");
  record.fingerprint = in.text("fingerprint");
  record.index = static_cast<uint32_t>(in.number("index"));
  record.rejected = static_cast<uint32_t>(in.number("rejected"));
  record.spec = std::move(spec);
  CAY_TRY(in.outcome());
  if (!isId(kPoolIdPrefix, record.id) && !isGivenId(record.id))
    return fail(Code::kInternal, "the record has no id");
  return record;
}

}  // namespace cay::sandbox
