#include "layers/make_ext4.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "sys/io.h"

namespace cay::layers {
namespace {

constexpr std::array kPrograms =
    std::to_array<const char*>({"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4"});

constexpr int kTargetNumber = 3;  // of the file, in the program that formats it
constexpr char kTarget[] = "/proc/self/fd/3";

// Every feature by name, so that the machine's mke2fs.conf has no say.
constexpr char kFeatures[] =
    "none,dir_index,dir_nlink,ext_attr,extent,extra_isize,filetype,flex_bg,huge_file,large_file,"
    "metadata_csum,sparse_super2";

class SpawnSettings {
 public:
  SpawnSettings(int file, int output) {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, 1);
    ::posix_spawn_file_actions_adddup2(&actions, output, 2);
    ::posix_spawn_file_actions_adddup2(&actions, file, kTargetNumber);
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

// Until the end of the pipe; only the beginning is kept.
std::string readAll(int pipe) {
  std::string text;
  std::array<char, 1024> piece;
  for (;;) {
    const auto got = sys::readSome(pipe, piece);
    if (!got || *got == 0) return text;
    if (text.size() < piece.size()) text.append(piece.data(), *got);
  }
}

Result<> run(const char* program, int file) {
  CAY_ASSIGN(sys::Pipe output, sys::makePipe());
  // -F: a file is no device, and nobody is there to ask. The inode tables read as zeros already.
  std::vector<std::string> words = {
      program, "-q", "-F",  "-O",   kFeatures,
      "-m",    "0",  "-b",  "4096", "-i",
      "8192",  "-I", "256", "-E",   "lazy_itable_init=0,root_owner=0:0",
      kTarget};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* const environment[] = {nullptr};
  pid_t pid = -1;
  {
    const SpawnSettings settings(file, output.write.get());
    const int err = ::posix_spawn(&pid, program, &settings.actions, &settings.attributes,
                                  arguments.data(), environment);
    if (err != 0) return failSys(program, err);
  }
  output.write.reset();
  const std::string text = readAll(output.read.get());
  int status = 0;
  while (::waitpid(pid, &status, 0) == -1) {
    if (errno == EINTR) continue;
    // Whoever reaps all children here was faster. With -q it is silent if, and only if, all went
    // well.
    status = errno == ECHILD && text.empty() ? 0 : -1;
    break;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Code::kInternal, std::string(program) + " failed: " + std::string(trim(text)));
}

}  // namespace

Result<> makeExt4(int file) {
  for (const char* program : kPrograms) {
    if (::access(program, X_OK) == 0) return run(program, file);
  }
  return fail(Code::kExhausted, "mkfs.ext4 is not installed here (package e2fsprogs)");
}

}  // namespace cay::layers
