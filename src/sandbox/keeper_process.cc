#include "sandbox/keeper_process.h"

#include <fcntl.h>

#include "base/text.h"
#include "sandbox/self_process.h"

namespace cay::sandbox {
namespace {

constexpr char kKeeperName[] = "cay-keeper";
constexpr int kListenerFd = 3;
constexpr int kLogFolderFd = 4;
constexpr size_t kArgumentCount = 6;

}  // namespace

KeeperLink::Spawner keeperSpawner(KeeperSettings settings, int logFolder) {
  return [settings = std::move(settings), logFolder](Fd listener) -> Result<> {
    const std::vector<std::string> arguments = {
        kKeeperName,
        std::to_string(settings.shape.headBytes),
        std::to_string(settings.shape.ringBytes),
        settings.cgroupName,
        settings.noCgroups,
        std::to_string(settings.commandOpenFiles),
    };
    const int descriptors[] = {listener.get(), logFolder};
    return startSelf(arguments, descriptors);
  };
}

std::optional<KeeperOptions> keeperArguments(const std::vector<std::string>& arguments) {
  if (arguments.size() != kArgumentCount || arguments[0] != kKeeperName) return std::nullopt;
  const auto head = parseUint(arguments[1]);
  const auto ring = parseUint(arguments[2]);
  const auto files = parseUint(arguments[5]);
  if (!head || !ring || !files) return std::nullopt;
  KeeperOptions options;
  for (const int fd : {kListenerFd, kLogFolderFd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  options.listener = Fd(kListenerFd);
  options.logFolder = Fd(kLogFolderFd);
  options.shape = {.headBytes = *head, .ringBytes = *ring};
  options.cgroupName = arguments[3];
  options.noCgroups = arguments[4];
  options.commandOpenFiles = *files;
  return options;
}

}  // namespace cay::sandbox
