#include "engine/flavors.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "host/body_fields.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

using host::number;
using host::Numbers;
using host::wrong;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;
constexpr uint32_t kBasicPids = 512;
constexpr uint32_t kLeastStarting = 4;
constexpr size_t kMostFileBytes = 1 << 20;

struct CpuFlavor {
  std::string_view name;
  std::string_view prettyName;
  uint32_t times;  // of cpu-basic
};
constexpr CpuFlavor kCpuFlavors[] = {
    {"cpu-basic", "CPU Basic", 1},
    {"cpu-upgrade", "CPU Upgrade", 2},
    {"cpu-performance", "CPU Performance", 4},
    {"cpu-xl", "CPU XL", 8},
};

struct GpuFlavor {
  std::string_view name;
  std::string_view model;  // a part of the driver's words; empty: any
  uint32_t gpus;
};
constexpr GpuFlavor kGpuFlavors[] = {
    {"gpu", "", 1},
    {"gpux2", "", 2},
    {"gpux4", "", 4},
    {"gpux8", "", 8},
    {"t4-small", "T4", 1},
    {"t4-medium", "T4", 1},
    {"l4x1", "L4", 1},
    {"l4x4", "L4", 4},
    {"l40sx1", "L40S", 1},
    {"l40sx4", "L40S", 4},
    {"l40sx8", "L40S", 8},
    {"a10g-small", "A10G", 1},
    {"a10g-large", "A10G", 1},
    {"a10g-largex2", "A10G", 2},
    {"a10g-largex4", "A10G", 4},
    {"a100-large", "A100", 1},
    {"a100x4", "A100", 4},
    {"a100x8", "A100", 8},
    {"h200", "H200", 1},
    {"h200x2", "H200", 2},
    {"h200x4", "H200", 4},
    {"h200x8", "H200", 8},
    {"rtx-pro-6000", "RTX PRO 6000", 1},
    {"rtx-pro-6000x2", "RTX PRO 6000", 2},
    {"rtx-pro-6000x4", "RTX PRO 6000", 4},
    {"rtx-pro-6000x8", "RTX PRO 6000", 8},
};

// "L4" is in "NVIDIA L4", not in "NVIDIA L40S"; "A100" is in "NVIDIA A100-SXM4-80GB".
bool isModel(std::string_view words, std::string_view model) {
  const size_t at = words.find(model);
  if (at == std::string_view::npos) return false;
  const auto isPart = [&](size_t i) {
    return i < words.size() && words[i] != ' ' && words[i] != '-';
  };
  return !isPart(at + model.size()) && (at == 0 || !isPart(at - 1));
}

Flavor cpuFlavor(const CpuFlavor& shape, const Machine& machine) {
  const uint64_t basic = std::clamp(machine.memoryBytes / 16, 512 * kMiB, 16 * kGiB);
  return {.name = std::string(shape.name),
          .prettyName = std::string(shape.prettyName),
          .resources = {.milliCpus = std::min(2 * shape.times, machine.cpus) * 1000,
                        .memoryBytes = std::min(basic * shape.times, machine.memoryBytes),
                        .pids = uint64_t{kBasicPids} * shape.times},
          .gpuModel = {}};
}

// Its share of the processors by its share of the GPUs, and half of that of the memory.
Flavor gpuFlavor(const GpuFlavor& shape, const Machine& machine) {
  const auto all = static_cast<uint32_t>(machine.gpus.size());
  const std::string count = shape.gpus == 1 ? "" : std::to_string(shape.gpus) + "x ";
  return {.name = std::string(shape.name),
          .prettyName = count + machine.gpus.front().model,
          .resources = {.milliCpus = std::max(1000U, machine.cpus * 1000 / all * shape.gpus),
                        .memoryBytes = machine.memoryBytes / 2 / all * shape.gpus,
                        .pids = uint64_t{kBasicPids} * 8 * shape.gpus,
                        .gpus = shape.gpus},
          .gpuModel = machine.gpus.front().model};
}

// A typing error must not look like a setting.
Result<> refuseUnknown(const json::Object& object, std::initializer_list<std::string_view> known) {
  for (const auto& member : object) {
    if (std::ranges::find(known, std::string_view(member.key())) == known.end()) {
      return wrong(member.key(), "is no setting of flavors");
    }
  }
  return {};
}

}  // namespace

Flavors Flavors::ofMachine(const Machine& machine) {
  Flavors flavors;
  flavors.memoryBytes_ = machine.memoryBytes;
  flavors.gpus_ = static_cast<uint32_t>(machine.gpus.size());
  flavors.maxStarting_ = std::max(kLeastStarting, 2 * machine.cpus);
  for (const CpuFlavor& shape : kCpuFlavors) flavors.all_.push_back(cpuFlavor(shape, machine));
  if (machine.gpus.empty()) return flavors;
  flavors.gpuModel_ = machine.gpus.front().model;
  for (const GpuFlavor& shape : kGpuFlavors) {
    const bool here = shape.model.empty() || isModel(flavors.gpuModel_, shape.model);
    if (here && shape.gpus <= flavors.gpus_) flavors.all_.push_back(gpuFlavor(shape, machine));
  }
  return flavors;
}

Result<Flavors> Flavors::parse(std::string_view text, const Machine& machine) {
  Flavors flavors = ofMachine(machine);
  CAY_ASSIGN(const json::Object object, host::bodyObject(text));
  CAY_TRY(refuseUnknown(object, {"memoryFactor", "maxStarting", "flavors"}));
  CAY_ASSIGN(const auto factor, number(object, "memoryFactor", 0.1, 1000, Numbers::kAny));
  flavors.memoryFactor_ = factor.value_or(flavors.memoryFactor_);
  CAY_ASSIGN(const auto starting, number(object, "maxStarting", 1, 10'000, Numbers::kWhole));
  flavors.maxStarting_ = static_cast<uint32_t>(starting.value_or(flavors.maxStarting_));
  const json::Value* list = host::field(object, "flavors");
  if (list == nullptr) return flavors;
  if (!list->is_array()) return wrong("flavors", "must be a list");
  for (const json::Value& given : list->get_array()) {
    if (!given.is_object()) return wrong("flavors", "must be a list of objects");
    CAY_TRY(flavors.change(given.get_object()));
  }
  return flavors;
}

Result<> Flavors::change(const json::Object& given) {
  CAY_TRY(
      refuseUnknown(given, {"name", "prettyName", "cpus", "memoryMb", "diskMb", "pids", "gpus"}));
  const json::Value* named = host::field(given, "name");
  if (named == nullptr) return wrong("name", "is missing from a flavor");
  CAY_ASSIGN(const std::string name, host::plainText(*named, "name"));
  auto at = std::ranges::find(all_, name, &Flavor::name);
  if (at == all_.end()) {
    Flavor fresh = all_.front();
    fresh.name = fresh.prettyName = name;
    at = all_.insert(at, std::move(fresh));
  }
  if (const json::Value* pretty = host::field(given, "prettyName")) {
    CAY_ASSIGN(at->prettyName, host::plainText(*pretty, "prettyName"));
  }
  Resources& limits = at->resources;
  CAY_ASSIGN(const auto cpus, number(given, "cpus", 0, 4096, Numbers::kAny));
  if (cpus) limits.milliCpus = static_cast<uint32_t>(std::ceil(*cpus * 1000));
  CAY_ASSIGN(const auto memory, number(given, "memoryMb", 1, 1 << 30, Numbers::kWhole));
  if (memory) limits.memoryBytes = static_cast<uint64_t>(*memory) * kMiB;
  CAY_ASSIGN(const auto disk, number(given, "diskMb", 0, 1 << 30, Numbers::kWhole));
  if (disk) limits.diskBytes = static_cast<uint64_t>(*disk) * kMiB;
  CAY_ASSIGN(const auto pids, number(given, "pids", 1, 4'194'304, Numbers::kWhole));
  if (pids) limits.pids = static_cast<uint64_t>(*pids);
  CAY_ASSIGN(const auto gpus, number(given, "gpus", 0, gpus_, Numbers::kWhole));
  if (gpus) limits.gpus = static_cast<uint32_t>(*gpus);
  at->gpuModel = limits.gpus == 0 ? "" : gpuModel_;
  return {};
}

Result<Flavors> Flavors::read(const std::string& file, const Machine& machine) {
  const auto text = sys::readFile(file.c_str(), kMostFileBytes);
  if (!text && text.error().sys == ENOENT) return ofMachine(machine);
  if (!text) return std::unexpected(text.error());
  auto flavors = parse(*text, machine);
  if (!flavors) return std::unexpected(std::move(flavors).error().wrap("'" + file + "'"));
  return flavors;
}

Result<Flavor> Flavors::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Flavor::name);
  if (found != all_.end()) return *found;
  const auto* const gpu = std::ranges::find(kGpuFlavors, name, &GpuFlavor::name);
  std::string message = "the flavor " + quoted(name) + " is unknown here";
  if (gpu != std::end(kGpuFlavors)) {
    message = "the flavor " + quoted(name) + " needs " + std::to_string(gpu->gpus) + " GPU(s)" +
              (gpu->model.empty() ? "" : " of the kind " + std::string(gpu->model)) +
              ", and this machine has " +
              (gpus_ == 0 ? "no GPU" : std::to_string(gpus_) + "x " + gpuModel_);
  }
  message += "; there are";
  for (const Flavor& flavor : all_) message.append(" ").append(flavor.name);
  return fail(Code::kInvalid, std::move(message));
}

uint64_t Flavors::promisedMemory() const {
  return static_cast<uint64_t>(static_cast<double>(memoryBytes_) * memoryFactor_);
}

}  // namespace cay::engine
