#include "sandbox/keeper_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/text.h"

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
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    char* const noEnvironment[] = {nullptr};

    // Moved out of the way first, so that neither lands on the other's number.
    const Fd highListener(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 10));
    const Fd highFolder(::fcntl(logFolder, F_DUPFD_CLOEXEC, 10));
    if (!highListener.valid() || !highFolder.valid())
      return failSys("cannot start the keeper", errno);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    for (int fd = 0; fd < 3; ++fd) {
      ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    }
    ::posix_spawn_file_actions_adddup2(&files, highListener.get(), kListenerFd);
    ::posix_spawn_file_actions_adddup2(&files, highFolder.get(), kLogFolderFd);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, "/proc/self/exe", &files, &attributes, argv.data(), noEnvironment);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (error != 0) return failSys("cannot start the keeper", error);
    return {};
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
