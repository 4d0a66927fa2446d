#include "sandbox/paths.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/ids.h"
#include "base/text.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

Result<> makeFolders(const std::string& path, mode_t mode) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return failSys("cannot make the state folder " + quoted(part), errno);
    }
    if (at == std::string::npos) return {};
  }
}

Result<std::string> lastingName(int folder) {
  Fd file(::openat(folder, "name", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failSys("name", errno);
  char text[64];
  CAY_ASSIGN(const size_t length, sys::preadSome(file.get(), text, 0));
  std::string name(text, length);
  if (isId("cay", name)) return name;
  name = newId("cay");
  CAY_TRY(sys::pwriteAll(file.get(), name, 0));
  return name;
}

}  // namespace

Result<Fd> openFolderAt(int parent, const char* name, mode_t mode) {
  if (::mkdirat(parent, name, mode) != 0 && errno != EEXIST) return failSys(name, errno);
  Fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder.valid()) return failSys(name, errno);
  return folder;
}

Result<LockedFolder> LockedFolder::open(const std::string& path, mode_t mode) {
  CAY_TRY(makeFolders(path, mode));
  LockedFolder state;
  state.folder = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!state.folder.valid()) return failSys("cannot open the state folder " + quoted(path), errno);
  struct stat info{};
  if (::fstat(state.folder.get(), &info) != 0 || info.st_uid != ::geteuid()) {
    return fail(Code::kConflict, "the state folder " + quoted(path) + " belongs to somebody else");
  }
  if ((info.st_mode & 0777) != mode && ::fchmod(state.folder.get(), mode) != 0) {
    return failSys("chmod of the state folder " + quoted(path), errno);
  }
  state.lock =
      Fd(::openat(state.folder.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!state.lock.valid()) return failSys("lock", errno);
  if (::flock(state.lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::kConflict, "the state folder " + quoted(path) +
                                     " is in use by another host; give this one its own (--state)");
  }
  CAY_ASSIGN(state.name, lastingName(state.folder.get()));
  return state;
}

Result<StateFolder> StateFolder::open(const std::string& path) {
  CAY_ASSIGN(LockedFolder locked, LockedFolder::open(path, 0700));
  StateFolder state{std::move(locked), {}};
  CAY_ASSIGN(state.execs, openFolderAt(state.folder.get(), "execs", 0700));
  return state;
}

}  // namespace cay::sandbox
