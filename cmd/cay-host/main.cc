// cay-host: wires the rooms together. Also the keeper and the nursery, which are this program under
// other names.
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/log.h"
#include "host/config.h"
#include "host/doctor.h"
#include "host/serve.h"
#include "isolation/ordinary_user.h"
#include "isolation/probe.h"
#include "sandbox/keeper.h"
#include "sandbox/keeper_process.h"
#include "sandbox/nursery.h"

namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// The environment as strings. The token is overwritten where the kernel shows it
// (/proc/<pid>/environ).
std::vector<std::string> takeEnvironment(char** environment) {
  std::vector<std::string> out;
  for (char** entry = environment; *entry != nullptr; ++entry) {
    out.emplace_back(*entry);
    if (out.back().starts_with("SBX_TOKEN=")) ::explicit_bzero(*entry, out.back().size());
  }
  return out;
}

// Descriptors that were left open around us are nobody's business below; 0 to 2 must exist, or a
// socket would take their place.
void tidyDescriptors() {
  while (true) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) break;
    if (fd > 2) {
      ::close(fd);
      break;
    }
    ::fcntl(fd, F_SETFD, 0);
  }
  (void)::syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
}

}  // namespace

int main(int argc, char** argv, char** environment) {
  if (const auto code = cay::sandbox::runAsNursery(argc, argv)) return *code;
  std::vector<std::string> arguments(argv, argv + argc);
  if (auto options = cay::sandbox::keeperArguments(arguments)) {
    return cay::sandbox::runKeeper(std::move(*options));
  }
  if (argc > 1 && arguments[1] == cay::isolation::kProbeArgument) {
    return cay::isolation::runProbe({argv + 2, static_cast<size_t>(argc - 2)});
  }
  tidyDescriptors();
  const std::vector<std::string> variables = takeEnvironment(environment);
  arguments.erase(arguments.begin());
  if (!arguments.empty() && arguments.front() == "doctor") {
    arguments.erase(arguments.begin());
    return cay::host::runDoctor(arguments, variables);
  }
  const auto config = cay::host::parseConfig(arguments, variables);
  if (!config) {
    std::fprintf(stderr, "cay-host: %s\n", config.error().message.c_str());
    return kExitUsage;
  }
  switch (config->action) {
    case cay::host::Config::Action::kHelp:
      std::fputs(std::string(cay::host::helpText()).c_str(), stdout);
      return 0;
    case cay::host::Config::Action::kVersion:
      std::puts("cay-host " CAY_VERSION);
      return 0;
    case cay::host::Config::Action::kServe:
      break;
  }
  // A hub of an ordinary user starts us as the root of its namespace.
  if (config->attached || config->pool) {
    if (const auto ordinary = cay::isolation::becomeOrdinaryUser(); !ordinary) {
      std::fprintf(stderr, "cay-host: %s\n", ordinary.error().message.c_str());
      return kExitFailure;
    }
  }
  (void)cay::setLogLevel(config->logLevel);
  // Whoever shares our uid must not read the token from our memory.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  return cay::host::serve(*config, cay::host::commandEnvironment(variables));
}
