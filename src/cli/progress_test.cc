#include "cli/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/table.h"

namespace cay::cli {
namespace {

using engine::PullProgress;

TEST(Progress, SizesAreReadable) {
  EXPECT_EQ(sizeText(0), "0 B");
  EXPECT_EQ(sizeText(999), "999 B");
  EXPECT_EQ(sizeText(1500), "1.5 kB");
  EXPECT_EQ(sizeText(12'345'678), "12.3 MB");
  EXPECT_EQ(sizeText(UINT64_MAX), "18446744.1 TB");
}

TEST(Progress, BarsFill) {
  const auto text = [](size_t done, size_t total) {
    return progressText({.stage = PullProgress::Stage::kUnpacking, .done = done, .total = total});
  };
  EXPECT_EQ(text(0, 4), "unpacking: [........................] 0 of 4 layers");
  EXPECT_EQ(text(2, 4), "unpacking: [############............] 2 of 4 layers");
  EXPECT_EQ(text(4, 4), "unpacking: [########################] 4 of 4 layers");
  EXPECT_EQ(text(0, 0), "unpacking: [########################] 0 of 0 layers");
  EXPECT_EQ(progressText({.done = 2, .bytes = 1500}), "fetching: part 2, 1.5 kB");
}

std::string shown(bool isTerminal) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const out = ::open_memstream(&text, &size);
  {
    ProgressLine line(out, isTerminal);
    line.show({.done = 1, .bytes = 1}, 0);
    line.show({.done = 1, .bytes = 2}, 500);
    line.show({.done = 1, .bytes = 3}, 6000);
    line.show({.done = 2, .bytes = 4}, 6001);
  }
  (void)std::fclose(out);
  std::string all(text, size);
  std::free(text);
  return all;
}

TEST(Progress, LinesThatStayAreFew) {
  EXPECT_EQ(shown(false), "fetching: part 1, 1 B\nfetching: part 1, 3 B\nfetching: part 2, 4 B\n");
}

TEST(Progress, ATerminalHasOneLineThatIsGoneAtTheEnd) {
  EXPECT_EQ(shown(true),
            "\r\x1b[Kfetching: part 1, 1 B\r\x1b[Kfetching: part 1, 2 B"
            "\r\x1b[Kfetching: part 1, 3 B\r\x1b[Kfetching: part 2, 4 B\r\x1b[K");
}

TEST(Table, ColumnsLineUpAndNothingCommandsTheTerminal) {
  Table table({"A", "LONGER", "C"});
  table.add({"first", "x", ""});
  table.add({"\x1b[31m", "", "z"});
  EXPECT_EQ(table.text(),
            "A           LONGER  C\n"
            "first       x       -\n"
            "'\\x1b[31m'  -       z\n");
}

}  // namespace
}  // namespace cay::cli
