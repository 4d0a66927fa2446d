#include "sandbox/known_exec.h"

#include "base/json.h"

namespace cay::sandbox {

std::string metaOf(const Exec& exec) {
  json::Object meta;
  meta["id"] = exec.id;
  meta["started_at_ms"] = exec.startedAtMs;
  meta["tag"] = exec.tag;
  meta["key"] = exec.key;
  meta["fingerprint"] = exec.fingerprint;
  meta["cmd"] = exec.cmd;
  return json::serialize(meta);
}

void readMeta(std::string_view text, Exec& exec) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return;
  const json::Object& meta = parsed->get_object();
  const auto string = [&](const char* name) {
    const json::Value* value = meta.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  if (const json::Value* at = meta.if_contains("started_at_ms"); at != nullptr && at->is_int64()) {
    exec.startedAtMs = at->get_int64();
  }
  exec.id = string("id");
  exec.tag = string("tag");
  exec.key = string("key");
  exec.fingerprint = string("fingerprint");
  exec.cmd = string("cmd");
}

}  // namespace cay::sandbox
