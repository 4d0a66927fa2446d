#include "engine/tool.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/fd.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr int kFirstDescriptor = 3;
constexpr int kOutOfTheWay = 16;
constexpr size_t kMostOutput = size_t{256} * 1024;

Result<std::string> find(std::string_view name) {
  for (const std::string folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
    std::string path = folder + std::string(name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return fail(Code::kNotFound, std::string(name) + " is not installed");
}

class Spawn {
 public:
  Spawn() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // We block signals; they should not.
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  void give(int descriptor, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor, as);
  }
  void giveNull(int as) {
    ::posix_spawn_file_actions_addopen(&actions_, as, "/dev/null", O_RDWR, 0);
  }
  Result<pid_t> start(const std::string& program, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program);
    std::vector<char*> words;
    words.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    char* const environment[] = {nullptr};
    pid_t pid = -1;
    const int error =
        ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, words.data(), environment);
    if (error != 0) return failSys(program, error);
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<std::string> runTool(std::string_view name, std::vector<std::string> arguments,
                            std::string_view input) {
  CAY_ASSIGN(const std::string program, find(name));
  // Files instead of pipes: nobody has to read while somebody writes.
  CAY_ASSIGN(const Fd in, sys::memoryFile("input", input));
  CAY_ASSIGN(const Fd out, sys::memoryFile("output", {}));
  CAY_ASSIGN(const Fd complaint, sys::memoryFile("complaint", {}));
  Spawn spawn;
  spawn.give(in.get(), STDIN_FILENO);
  spawn.give(out.get(), STDOUT_FILENO);
  spawn.give(complaint.get(), STDERR_FILENO);
  CAY_ASSIGN(const pid_t pid, spawn.start(program, std::move(arguments)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return failSys(program, errno);
  }
  CAY_ASSIGN(const std::string said,
             sys::readFile(sys::fdPath(complaint.get()).c_str(), kMostOutput));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Code::kInternal, program + ": " + said.substr(0, said.find('\n')));
  }
  return sys::readFile(sys::fdPath(out.get()).c_str(), kMostOutput);
}

Result<pid_t> startTool(std::string_view name, std::vector<std::string> arguments,
                        std::span<const int> descriptors) {
  CAY_ASSIGN(const std::string program, find(name));
  Spawn spawn;
  for (int fd = 0; fd < kFirstDescriptor; ++fd) spawn.giveNull(fd);
  // Moved out of the way first, so that none lands on another's number.
  std::vector<Fd> high;
  for (const int descriptor : descriptors) {
    high.emplace_back(::fcntl(descriptor, F_DUPFD_CLOEXEC, kOutOfTheWay));
    if (!high.back().valid()) return failSys(program, errno);
    spawn.give(high.back().get(), kFirstDescriptor + static_cast<int>(high.size()) - 1);
  }
  return spawn.start(program, std::move(arguments));
}

}  // namespace cay::engine
