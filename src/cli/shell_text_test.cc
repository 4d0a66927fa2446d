#include "cli/shell_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>

namespace cay::cli {
namespace {

const std::string kHostile = "a'b\"c$(touch /tmp/x)`id`\\ \\' ;& \n#*~!\t$HOME\\";

// What a shell says on its standard output.
std::string run(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                             ::pclose);
  std::string out;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) {
    out.push_back(static_cast<char>(c));
  }
  return out;
}

TEST(ShellText, ShTakesValuesAsTheyAre) {
  const std::string text =
      shellText(Shell::kSh, {{"CAY_A", kHostile}, {"CAY_B", ""}, {"HOME", std::nullopt}});
  EXPECT_EQ(run("eval \"$(cat <<'END_OF_IT'\n" + text +
                "END_OF_IT\n)\"\nprintf '%s|%s|%s' \"$CAY_A\" \"$CAY_B\" \"${HOME-unset}\""),
            kHostile + "||unset");
}

TEST(ShellText, FishQuotesItsOwnWay) {
  EXPECT_EQ(shellText(Shell::kFish, {{"A", "a'b\\c$x"}, {"B", std::nullopt}}),
            "set -gx A 'a\\'b\\\\c$x';\nset -e B;\n");
}

TEST(ShellText, JsonHasNullForWhatIsNotToBeSet) {
  EXPECT_EQ(shellText(Shell::kJson, {{"A", "a\"\xff"}, {"B", std::nullopt}}),
            "{\"A\":\"a\\\"\\ufffd\",\"B\":null}\n");
}

}  // namespace
}  // namespace cay::cli
