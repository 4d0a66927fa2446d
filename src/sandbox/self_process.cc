#include "sandbox/self_process.h"

#include <fcntl.h>
#include <spawn.h>

#include <cerrno>

#include "base/fd.h"

namespace cay::sandbox {
namespace {

constexpr int kFirst = 3;
constexpr int kOutOfTheWay = 16;

}  // namespace

Result<> startProgram(const std::string& path, const std::vector<std::string>& arguments,
                      std::span<const int> descriptors) {
  const std::string failure = "cannot start " + arguments.front();
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char* const noEnvironment[] = {nullptr};

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  for (int fd = 0; fd < kFirst; ++fd) {
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  // Moved out of the way first, so that none lands on another's number.
  std::vector<Fd> high;
  for (const int descriptor : descriptors) {
    high.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!high.back().valid()) {
      ::posix_spawn_file_actions_destroy(&files);
      return failSys(failure, errno);
    }
    ::posix_spawn_file_actions_adddup2(&files, high.back().get(),
                                       kFirst + static_cast<int>(high.size()) - 1);
  }
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, path.c_str(), &files, &attributes, argv.data(), noEnvironment);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0) return failSys(failure, error);
  return {};
}

}  // namespace cay::sandbox
