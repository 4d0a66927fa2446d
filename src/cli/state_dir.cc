#include "cli/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "sys/file.h"

namespace cay::cli {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// Whatever is below is private because this folder is.
Result<> requirePrivate(const std::string& path) {
  CAY_ASSIGN(const Fd folder, sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(folder.get()));
  if (stat.st_uid != ::geteuid()) {
    return fail(Code::kConflict, "the state folder " + cay::quoted(path) +
                                     " belongs to somebody else; give another one (--state)");
  }
  if ((stat.st_mode & kOthers) == 0) return {};
  return sys::chmodFd(folder.get(), 0700);
}

Result<hub::Paths> pathsOf(const std::string& given) {
  return statePaths(given, ::geteuid() == 0, variable);
}

}  // namespace

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<hub::Paths> statePaths(const std::string& given, bool isRoot, const Variables& variables) {
  std::string path = given;
  if (path.empty() && isRoot) path = "/var/lib/cay";
  // The variable must be an absolute path, or it counts as not set.
  if (const std::string base = variables("XDG_STATE_HOME"); path.empty() && base.starts_with('/')) {
    path = base + "/cay";
  }
  if (const std::string home = variables("HOME"); path.empty() && home.starts_with('/')) {
    path = home + "/.local/state/cay";
  }
  if (path.empty()) {
    return fail(Code::kInvalid, "neither HOME nor XDG_STATE_HOME is set: give a folder (--state)");
  }
  std::error_code error;
  fs::path plain = fs::absolute(path, error);
  if (!error) plain = fs::weakly_canonical(plain, error);
  if (error) return failSys("the state folder " + cay::quoted(path), error.value());
  std::string text = plain.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  if (text == "/") return fail(Code::kInvalid, "the state cannot be '/'");
  return hub::Paths{std::move(text)};
}

Result<hub::Paths> openHub(const std::string& given) {
  CAY_ASSIGN(hub::Paths paths, pathsOf(given));
  const auto database = sys::statAt(AT_FDCWD, paths.database().c_str(), 0);
  if (!database && database.error().sys == EACCES) return std::unexpected(database.error());
  if (!database) {
    return fail(Code::kNotFound, "there is no hub in " + cay::quoted(paths.state) +
                                     " yet: start one with  cay serve --state " + paths.state);
  }
  CAY_TRY(requirePrivate(paths.state));
  return paths;
}

Result<hub::Paths> makeState(const std::string& given) {
  CAY_ASSIGN(hub::Paths paths, pathsOf(given));
  std::error_code error;
  fs::create_directories(fs::path(paths.state).parent_path(), error);
  if (error) return failSys("make the folder of " + cay::quoted(paths.state), error.value());
  const auto made = sys::makeDirectoryAt(AT_FDCWD, paths.state.c_str(), 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  CAY_TRY(requirePrivate(paths.state));
  return paths;
}

}  // namespace cay::cli
