// The table of figures: each beside what a bare loop reached in the same run, and beside its
// target. Printed as Markdown, so that it can go into a document as it is.
#pragma once

#include <string>
#include <vector>

namespace cay::bench {

enum class Verdict { kNone, kOk, kMiss };

struct Figure {
  // What a bare loop reached in the same run, and the figure's ratio to that.
  Figure& beside(std::string bare, double toBare);
  // Something worth knowing in the place of a baseline.
  Figure& note(std::string text);
  // What it has to reach, and whether it does.
  Figure& promise(std::string bound, bool met);

  std::string name;
  std::string value;
  std::string baseline;
  std::string ratio;
  std::string target;
  Verdict verdict = Verdict::kNone;
};

class Report {
 public:
  // The reference is good until the next call.
  Figure& add(std::string name, std::string value);
  void print() const;
  [[nodiscard]] size_t misses() const;

 private:
  std::vector<Figure> figures_;
};

// `value` with so many digits after the point.
std::string decimal(double value, int digits);
inline std::string millis(double value) {
  return decimal(value, 3) + " ms";
}
inline std::string megabytes(double bytes) {
  return decimal(bytes / 1e6, 2) + " MB";
}
// One line about what is being measured now, on stderr.
void progress(const std::string& what);

}  // namespace cay::bench
