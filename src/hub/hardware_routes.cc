#include "hub/hardware_routes.h"

#include "engine/flavors.h"

namespace cay::hub {
namespace {

constexpr uint64_t kMegabyte = uint64_t{1} << 20;
constexpr uint64_t kGigabyte = uint64_t{1} << 30;
constexpr uint32_t kThousand = 1000;

// "2 vCPU", "0.5 vCPU".
std::string cpuText(uint32_t milliCpus) {
  std::string text = std::to_string(milliCpus / kThousand);
  if (const uint32_t rest = milliCpus % kThousand; rest != 0) {
    std::string digits = std::to_string(kThousand + rest).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text.append(".").append(digits);
  }
  return text + " vCPU";
}

std::string sizeText(uint64_t bytes) {
  if (bytes < kGigabyte) return std::to_string(bytes / kMegabyte) + " MB";
  return std::to_string((bytes + kGigabyte / 2) / kGigabyte) + " GB";
}

json::Value acceleratorOf(const engine::Flavor& flavor) {
  if (flavor.resources.gpus == 0) return nullptr;
  return json::Object{{"type", "gpu"},
                      {"model", flavor.gpuModel},
                      {"quantity", std::to_string(flavor.resources.gpus)},
                      {"vram", "N/A"},
                      {"manufacturer", "Nvidia"}};
}

}  // namespace

net::Task<Result<>> listHardware(ApiCall& call) {
  json::Array hardware;
  for (const engine::Flavor& flavor : call.state.engine.flavors().all()) {
    const engine::Resources& resources = flavor.resources;
    json::Object item{{"name", flavor.name},
                      {"prettyName", flavor.prettyName},
                      {"cpu", cpuText(resources.milliCpus)},
                      {"ram", sizeText(resources.memoryBytes)},
                      {"accelerator", acceleratorOf(flavor)},
                      {"unitCostMicroUSD", 0},
                      {"unitCostUSD", 0.0},
                      {"unitLabel", "minute"}};
    if (resources.diskBytes > 0) item["ephemeralStorage"] = sizeText(resources.diskBytes);
    hardware.push_back(std::move(item));
  }
  co_return co_await answer(call, std::move(hardware));
}

}  // namespace cay::hub
