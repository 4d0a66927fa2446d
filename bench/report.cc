#include "report.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cay::bench {
namespace {

using Cells = std::array<std::string, 6>;

Cells cellsOf(const Figure& figure) {
  const char* verdict = "";
  if (figure.verdict == Verdict::kOk) verdict = "ok";
  if (figure.verdict == Verdict::kMiss) verdict = "MISS";
  return {figure.name, figure.value, figure.baseline, figure.ratio, figure.target, verdict};
}

// Characters, not bytes: the cells hold signs such as "≤".
size_t width(const std::string& text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void printRow(const Cells& cells, const std::array<size_t, 6>& widths, char fill = ' ') {
  std::string line = "|";
  for (size_t i = 0; i < cells.size(); ++i) {
    line.push_back(fill);
    line.append(cells[i]).append(widths[i] - width(cells[i]), fill);
    line.push_back(fill);
    line.push_back('|');
  }
  std::puts(line.c_str());
}

}  // namespace

Figure& Figure::beside(std::string bare, double toBare) {
  baseline = std::move(bare);
  ratio = decimal(toBare, 2);
  return *this;
}

Figure& Figure::note(std::string text) {
  baseline = std::move(text);
  return *this;
}

Figure& Figure::promise(std::string bound, bool met) {
  target = std::move(bound);
  verdict = met ? Verdict::kOk : Verdict::kMiss;
  return *this;
}

Figure& Report::add(std::string name, std::string value) {
  Figure& figure = figures_.emplace_back();
  figure.name = std::move(name);
  figure.value = std::move(value);
  return figure;
}

void Report::print() const {
  std::vector<Cells> rows = {{"figure", "value", "baseline", "ratio", "target", ""}};
  for (const Figure& figure : figures_) rows.push_back(cellsOf(figure));
  std::array<size_t, 6> widths{};
  for (const Cells& cells : rows) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width(cells[i]));
  }
  printRow(rows.front(), widths);
  printRow({}, widths, '-');
  for (size_t i = 1; i < rows.size(); ++i) printRow(rows[i], widths);
}

size_t Report::misses() const {
  return static_cast<size_t>(std::ranges::count(figures_, Verdict::kMiss, &Figure::verdict));
}

std::string decimal(double value, int digits) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void progress(const std::string& what) {
  (void)std::fprintf(stderr, "measuring: %s\n", what.c_str());
}

}  // namespace cay::bench
