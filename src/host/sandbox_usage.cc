#include "host/sandbox_usage.h"

#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "sys/file.h"
#include "sys/uapi_fs.h"

namespace cay::host {
namespace {

constexpr size_t kMostFiles = 50'000;
constexpr uint64_t kBlock = 512;  // of st_blocks, whatever the file system's own are

}  // namespace

// Folder by folder, each opened by a path from the top one, so that a deep tree holds no more than
// one descriptor.
std::optional<uint64_t> bytesBelow(int dir, const std::string& name, size_t most) {
  uint64_t bytes = 0;
  size_t files = 0;
  std::vector<std::string> folders = {name};
  while (!folders.empty()) {
    const std::string path = std::move(folders.back());
    folders.pop_back();
    // The tree is the sandbox's, which may put a link in our way at any moment.
    const auto folder = sys::openAt2(dir, path.c_str(), O_RDONLY | O_DIRECTORY, 0,
                                     sys::kResolveBeneath | sys::kResolveNoSymlinks);
    const auto entries =
        folder ? sys::readDirectory(folder->get()) : std::unexpected(folder.error());
    if (!entries) {
      // It has gone meanwhile, or is no folder any more.
      const int error = entries.error().sys;
      if (error == ENOENT || error == ENOTDIR || error == ELOOP) continue;
      return std::nullopt;
    }
    files += entries->size();
    if (files > most) return std::nullopt;
    for (const sys::DirEntry& entry : *entries) {
      const auto stat = sys::statAt(folder->get(), entry.name.c_str());
      if (!stat) continue;
      bytes += static_cast<uint64_t>(stat->st_blocks) * kBlock;
      if (S_ISDIR(stat->st_mode)) folders.push_back(path + "/" + entry.name);
    }
  }
  return bytes;
}

SandboxUsage readUsage(const isolation::LimitGroups& groups, const sandbox::PoolFolder& folder,
                       const sandbox::PoolRecord& record) {
  SandboxUsage usage{.group = groups.usage(record.slot), .diskBytes = 0};
  const std::string prefix = folder.of(record.id).prefix;
  if (const auto disk = sys::statAt(folder.fd(), (prefix + "disk.img").c_str())) {
    usage.diskBytes = static_cast<uint64_t>(disk->st_blocks) * kBlock;
    return usage;
  }
  const char* files = record.mode == isolation::Mode::kRestricted ? "home" : "tops";
  usage.diskBytes = bytesBelow(folder.fd(), prefix + files, kMostFiles);
  return usage;
}

}  // namespace cay::host
