#include "host/sandbox_usage.h"

#include <sys/stat.h>

#include <vector>

#include "sys/file.h"

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
    const auto folder = sys::openAt(dir, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const auto entries =
        folder ? sys::readDirectory(folder->get()) : std::unexpected(folder.error());
    if (!entries) {
      if (entries.error().code == Code::kNotFound) continue;  // it has gone meanwhile
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
