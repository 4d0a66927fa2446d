#include "cli/table.h"

#include <algorithm>

#include "base/text.h"

namespace cay::cli {
namespace {

constexpr size_t kBetween = 2;

std::string harmless(const std::string& cell) {
  const bool isPlain = std::ranges::all_of(cell, [](char c) { return c >= 0x20 && c < 0x7F; });
  if (!isPlain) return quoted(cell);
  return cell.empty() ? "-" : cell;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  std::ranges::transform(cells, cells.begin(), harmless);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line.append(row[i]).append(widths[i] - row[i].size() + kBetween, ' ');
    }
    out.append(line, 0, line.find_last_not_of(' ') + 1).append("\n");
  }
  return out;
}

}  // namespace cay::cli
