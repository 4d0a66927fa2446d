#include "spawn.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "sys/io.h"

namespace cay::bench {
namespace {

pid_t start(const Command& command, const char* const* environment,
            const posix_spawn_file_actions_t* actions) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv[0], actions, nullptr, argv.data(),
                                  const_cast<char* const*>(environment));
  if (error != 0) throw std::runtime_error("cannot start " + command[0] + ": " + errnoText(error));
  return pid;
}

void expectSuccess(const Command& command, pid_t pid) {
  const int status = waitFor(pid);
  if (status != 0) {
    throw std::runtime_error(command[0] + " ended with status " + std::to_string(status));
  }
}

}  // namespace

void spawnAndWait(const Command& command) {
  expectSuccess(command, start(command, environ, nullptr));
}

std::string spawnAndRead(const Command& command) {
  auto pipe = sys::makePipe();
  if (!pipe) throw std::runtime_error(pipe.error().message);
  const pid_t pid = spawn(command, environ, STDOUT_FILENO, pipe->write);
  pipe->write.reset();
  std::string output;
  std::array<char, 4096> buffer;
  for (;;) {
    const auto count = sys::readSome(pipe->read.get(), buffer);
    if (!count) throw std::runtime_error(count.error().message);
    if (*count == 0) break;
    output.append(buffer.data(), *count);
  }
  expectSuccess(command, pid);
  return output;
}

pid_t spawn(const Command& command, const char* const* environment, int streamNumber,
            const Fd& stream) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, stream.get(), streamNumber);
  const pid_t pid = start(command, environment, &actions);
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int waitFor(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw std::runtime_error("waitpid: " + errnoText(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace cay::bench
