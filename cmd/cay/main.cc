// cay: the hub and its tools. Also cay-net, which is this program under another name.
#include <csignal>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "engine/net_process.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (const auto settings = cay::engine::netArguments(arguments)) {
    return cay::engine::runNetProcess(*settings);
  }
  if (!arguments.empty()) arguments.erase(arguments.begin());
  // A reader that has gone is an error of a write, to be told, not the end of us.
  (void)std::signal(SIGPIPE, SIG_IGN);
  return cay::cli::runCay(std::move(arguments));
}
