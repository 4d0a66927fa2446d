#include "engine/job.h"

#include <array>

namespace cay::engine {
namespace {

constexpr std::array kStageNames =
    std::to_array<std::string_view>({"SCHEDULING", "RUNNING", "COMPLETED", "ERROR", "CANCELED"});

}  // namespace

std::string_view stageName(Stage stage) {
  return kStageNames.at(static_cast<size_t>(stage));
}

std::optional<Stage> stageOf(std::string_view name) {
  for (size_t i = 0; i < kStageNames.size(); ++i) {
    if (kStageNames.at(i) == name) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

}  // namespace cay::engine
