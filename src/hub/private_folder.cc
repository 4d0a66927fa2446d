#include "hub/private_folder.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/text.h"
#include "files/temp_file.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::hub {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
constexpr size_t kMostBytes = size_t{16} << 20;

Result<> lock(const Fd& folder) {
  while (::flock(folder.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failSys("flock", errno);
  }
  return {};
}

Result<> flush(int fd) {
  if (::fsync(fd) != 0) return failSys("fsync", errno);
  return {};
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  if (auto made = sys::makeDirectoryAt(AT_FDCWD, path.c_str(), 0700);
      !made && made.error().sys != EEXIST) {
    return std::unexpected(std::move(made).error().wrap("make " + quoted(path)));
  }
  CAY_ASSIGN(Fd fd, sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(fd.get()));
  if (stat.st_uid != ::geteuid() || (stat.st_mode & kOthersWrite) != 0) {
    return fail(Code::kConflict, quoted(path) + " can be changed by others");
  }
  CAY_TRY(lock(fd));
  PrivateFolder folder(std::move(fd));
  CAY_ASSIGN(const auto names, folder.names());
  for (const std::string& name : names) {
    if (files::isTempName(name)) CAY_TRY(folder.remove(name));
  }
  return folder;
}

Result<std::optional<std::string>> PrivateFolder::read(const std::string& name) const {
  return readFile(name, false);
}

Result<std::optional<std::string>> PrivateFolder::readSecret(const std::string& name) const {
  return readFile(name, true);
}

Result<std::optional<std::string>> PrivateFolder::readFile(const std::string& name,
                                                           bool secret) const {
  const auto stat = sys::statAt(folder_.get(), name.c_str());
  if (!stat && stat.error().sys == ENOENT) return std::nullopt;
  if (!stat) return std::unexpected(stat.error());
  if (!S_ISREG(stat->st_mode)) return fail(Code::kConflict, quoted(name) + " is not a file");
  if (secret && (stat->st_uid != ::geteuid() || (stat->st_mode & kOthers) != 0)) {
    return fail(Code::kConflict, quoted(name) + " is a secret, but others can read it");
  }
  return sys::readFileAt(folder_.get(), name.c_str(), kMostBytes);
}

Result<> PrivateFolder::write(const std::string& name, std::string_view text, mode_t mode,
                              Lasts lasts) {
  CAY_ASSIGN(files::TempFile file, files::TempFile::create(folder_.get(), 0600));
  CAY_TRY(sys::chmodFd(file.fd(), mode));
  CAY_TRY(sys::writeAll(file.fd(), text));
  if (lasts == Lasts::kForever) CAY_TRY(flush(file.fd()));
  CAY_TRY(file.publish(name));
  return lasts == Lasts::kForever ? flush(folder_.get()) : Result<>();
}

Result<> PrivateFolder::remove(const std::string& name) {
  return sys::unlinkAt(folder_.get(), name.c_str());
}

Result<std::vector<std::string>> PrivateFolder::names() const {
  CAY_ASSIGN(const auto entries, sys::readDirectory(folder_.get()));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const sys::DirEntry& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace cay::hub
