#include "sandbox/wire.h"

namespace cay::sandbox {
namespace {

constexpr int32_t kAbsent = -1;

void putOptional(Writer& out, const std::optional<int>& value) {
  out.put(static_cast<int32_t>(value.value_or(kAbsent)));
}

std::optional<int> getOptional(Reader& in) {
  const auto value = in.get<int32_t>();
  return value == kAbsent ? std::nullopt : std::optional<int>(value);
}

void putList(Writer& out, const std::vector<std::string>& list) {
  out.put(static_cast<uint32_t>(list.size()));
  for (const std::string& item : list) out.put(item);
}

std::vector<std::string> getList(Reader& in) {
  std::vector<std::string> list;
  for (auto left = in.get<uint32_t>(); left > 0 && in.ok(); --left) list.emplace_back(in.text());
  return list;
}

}  // namespace

void putOffsets(Writer& out, const Offsets& offsets) {
  for (const uint64_t at : offsets.at) out.put(at);
}

Offsets getOffsets(Reader& in) {
  Offsets offsets;
  for (uint64_t& at : offsets.at) at = in.get<uint64_t>();
  return offsets;
}

void putUsage(Writer& out, const Usage& usage) {
  out.put(usage.userMs).put(usage.systemMs).put(usage.maxRssBytes);
  out.put(usage.readBytes).put(usage.writeBytes);
}

Usage getUsage(Reader& in) {
  Usage usage;
  usage.userMs = in.get<uint64_t>();
  usage.systemMs = in.get<uint64_t>();
  usage.maxRssBytes = in.get<uint64_t>();
  usage.readBytes = in.get<uint64_t>();
  usage.writeBytes = in.get<uint64_t>();
  return usage;
}

void putExit(Writer& out, const ExitRecord& record) {
  out.put(record.cause);
  putOptional(out, record.exitCode);
  putOptional(out, record.signal);
  out.put(record.pid).put(record.durationMs);
  putUsage(out, record.usage);
  for (uint64_t bytes : record.outputBytes) out.put(bytes);
  out.put(record.error).put(record.limitsHit);
}

ExitRecord getExit(Reader& in) {
  ExitRecord record;
  record.cause = in.get<Cause>();
  record.exitCode = getOptional(in);
  record.signal = getOptional(in);
  record.pid = in.get<int32_t>();
  record.durationMs = in.get<int64_t>();
  record.usage = getUsage(in);
  for (uint64_t& bytes : record.outputBytes) bytes = in.get<uint64_t>();
  record.error = in.text();
  record.limitsHit = in.get<uint8_t>();
  return record;
}

void putSpec(Writer& out, const ExecSpec& spec) {
  out.put(spec.id).put(spec.kind);
  putList(out, spec.argv);
  putList(out, spec.env);
  out.put(spec.cwd).put(spec.timeoutMs).put(spec.onDisconnect).put(spec.stdinMode);
  out.put(spec.file).put(spec.overwrite).put(spec.meta).put(spec.lines);
}

ExecSpec getSpec(Reader& in) {
  ExecSpec spec;
  spec.id = in.text();
  spec.kind = in.get<Kind>();
  spec.argv = getList(in);
  spec.env = getList(in);
  spec.cwd = in.text();
  spec.timeoutMs = in.get<int64_t>();
  spec.onDisconnect = in.get<OnDisconnect>();
  spec.stdinMode = in.get<Stdin>();
  spec.file = in.text();
  spec.overwrite = in.get<bool>();
  spec.meta = in.text();
  spec.lines = in.get<bool>();
  return spec;
}

}  // namespace cay::sandbox
