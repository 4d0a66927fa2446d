// A table for people: columns as wide as what is in them.
#pragma once

#include <string>
#include <vector>

namespace cay::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) : rows_{std::move(heads)} {}

  // As many cells as there are heads. What terminals might take for commands is escaped.
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cay::cli
