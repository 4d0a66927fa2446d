#include "engine/job_words.h"

#include <array>
#include <cstdio>
#include <map>

#include "engine/gpu_files.h"
#include "engine/group_hosts.h"

namespace cay::engine {
namespace {

constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int64_t kMillis = 1000;

std::string coresText(uint32_t milliCpus) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%g", milliCpus / 1000.0);
  return out.data();
}

// As Kubernetes writes it.
std::string memoryText(uint64_t bytes) {
  const uint64_t mebibytes = bytes >> 20;
  return mebibytes % 1024 == 0 ? std::to_string(mebibytes / 1024) + "Gi"
                               : std::to_string(mebibytes) + "Mi";
}

void append(std::string& path, std::string_view folder) {
  path.append(path.empty() ? "" : ":").append(folder);
}

Outcome failed(std::string message) {
  return {.stage = Stage::kError, .message = std::move(message)};
}

}  // namespace

std::vector<std::string> jobEnvironment(const JobSpec& spec, const layers::ImageConfig& image) {
  std::map<std::string, std::string> all;
  all["PATH"] = kPath;
  for (const std::string& text : image.env) {
    const size_t at = text.find('=');
    if (at != std::string::npos && at > 0) all[text.substr(0, at)] = text.substr(at + 1);
  }
  all["HOME"] = "/root";
  const bool isServed = spec.kind != Kind::kPlain;
  for (const Pairs* pairs : {&spec.env, &spec.secrets}) {
    for (const auto& [name, value] : *pairs) {
      if (!isServed || !name.starts_with("SBX_")) all[name] = value;
    }
  }
  if (spec.resources.gpus > 0) {
    append(all["LD_LIBRARY_PATH"], kDriverLibraries);
    // An image may have an nvidia-smi, of another driver or of none.
    all["PATH"] = std::string(kDriverPrograms) + ":" + all["PATH"];
  }
  for (const auto& [name, value] : groupEnvironment(spec)) all[name] = value;
  all["JOB_ID"] = spec.id;
  all["CPU_CORES"] = coresText(spec.resources.milliCpus);
  all["MEMORY"] = memoryText(spec.resources.memoryBytes);
  std::vector<std::string> out;
  out.reserve(all.size());
  for (const auto& [name, value] : all) out.push_back(std::string(name).append("=").append(value));
  return out;
}

Outcome outcomeOf(const JobSpec& spec, const sandbox::ExitRecord& exit) {
  using sandbox::Cause;
  switch (exit.cause) {
    case Cause::kExited:
      if (exit.exitCode.value_or(-1) == 0) return {.stage = Stage::kCompleted, .message = {}};
      return failed("Job failed with exit code: " + std::to_string(exit.exitCode.value_or(-1)));
    case Cause::kSignaled:
      return failed("killed by signal " + std::to_string(exit.signal.value_or(0)));
    case Cause::kTimedOut:
      return failed("timed out after " + std::to_string(spec.timeoutMs / kMillis) + " s");
    case Cause::kOom:
      return failed("out of memory (limit " + sizeText(spec.resources.memoryBytes) + ")");
    case Cause::kStartFailed:
      return failed("the command could not be started: " + exit.error);
    case Cause::kHostLost:
      return failed("the job's first process died, and all others with it");
    case Cause::kKilled:
    case Cause::kDisconnected:
    case Cause::kHostStopped:
      break;
  }
  return failed("ended from outside");
}

std::string sizeText(uint64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%.4g %s", value, kUnits.at(unit));
  return out.data();
}

std::string imageText(const layers::Image& image, std::string_view asked) {
  if (image.alias.empty()) return image.name;
  return std::string(image.name).append(" (alias of ").append(asked).append(")");
}

}  // namespace cay::engine
