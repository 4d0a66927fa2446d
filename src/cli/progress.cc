#include "cli/progress.h"

#include <algorithm>
#include <array>

namespace cay::cli {
namespace {

using Stage = engine::PullProgress::Stage;

constexpr char kEmptyLine[] = "\r\x1b[K";
constexpr size_t kBarWidth = 24;
// Where lines stay, one that says no more than that it goes on is worth showing as rarely as this.
constexpr int64_t kStillAtItMs = 5'000;

std::string bar(size_t done, size_t total) {
  const size_t filled = total == 0 ? kBarWidth : std::min(kBarWidth, kBarWidth * done / total);
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]";
}

}  // namespace

std::string sizeText(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  constexpr double kStep = 1000;
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= kStep && unit + 1 < kUnits.size()) {
    value /= kStep;
    ++unit;
  }
  std::array<char, 32> text;
  (void)std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value,
                      kUnits[unit]);
  return text.data();
}

std::string progressText(const engine::PullProgress& progress) {
  if (progress.stage == Stage::kFetching) {
    return "fetching: part " + std::to_string(progress.done) + ", " + sizeText(progress.bytes);
  }
  return "unpacking: " + bar(progress.done, progress.total) + " " + std::to_string(progress.done) +
         " of " + std::to_string(progress.total) + " layers";
}

ProgressLine::~ProgressLine() {
  if (isTerminal_ && hasShown_) (void)std::fputs(kEmptyLine, out_);
}

void ProgressLine::show(const engine::PullProgress& progress, int64_t nowMs) {
  const bool isNews = !hasShown_ || progress.stage != last_.stage || progress.done != last_.done;
  if (!isTerminal_ && !isNews && nowMs - lastMs_ < kStillAtItMs) return;
  const std::string text = progressText(progress);
  (void)std::fprintf(out_, isTerminal_ ? "\r\x1b[K%s" : "%s\n", text.c_str());
  (void)std::fflush(out_);
  hasShown_ = true;
  last_ = progress;
  lastMs_ = nowMs;
}

}  // namespace cay::cli
