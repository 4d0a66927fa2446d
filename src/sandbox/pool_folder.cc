#include "sandbox/pool_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/remove_tree.h"

namespace cay::sandbox {
namespace {

using isolation::Mode;

constexpr char kRecord[] = "record.json";
constexpr char kTrash[] = "trash/";
constexpr std::string_view kBatch = "batch.";
constexpr std::string_view kReady = "ready.";
constexpr size_t kMostRecordBytes = 4 << 20;
// In restricted mode the users of sandboxes must reach their homes.
constexpr mode_t kClosed = 0700;
constexpr mode_t kPassable = 0711;

Result<std::string> absolutePath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  if (!real) return failSys("the state folder " + quoted(path), errno);
  return std::string(real.get());
}

Result<> requirePassable(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    CAY_ASSIGN(const sys::Stat stat, sys::statAt(AT_FDCWD, part.c_str()));
    if ((stat.st_mode & S_IXOTH) != 0) continue;
    return fail(Code::kInvalid, "sandboxes could not reach their homes in the state folder, as " +
                                    quoted(part) + " is closed to other users (--state)");
  }
  return {};
}

Result<> writeNew(int dir, const std::string& name, std::string_view text) {
  CAY_ASSIGN(const Fd file,
             sys::openAt(dir, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  return sys::writeAll(file.get(), text);
}

// Into a file that is there, and empty.
Result<> fillRecord(int dir, const std::string& path, const PoolRecord& record) {
  CAY_ASSIGN(const Fd file, sys::openAt(dir, path.c_str(), O_WRONLY | O_NOFOLLOW));
  return sys::writeAll(file.get(), recordText(record));
}

std::string recordPath(const PoolRecord& record) {
  return record.id + "/" + kRecord;
}

std::string readyPath(const PoolRecord& record) {
  return record.id + "/" + std::string(kReady) + std::to_string(record.slot);
}

Result<std::vector<std::string>> namesIn(const Fd& folder) {
  CAY_ASSIGN(const std::vector<sys::DirEntry> entries, sys::readDirectory(folder.get()));
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const sys::DirEntry& entry : entries) names.push_back(entry.name);
  return names;
}

}  // namespace

Result<PoolFolder> PoolFolder::open(const std::string& path) {
  PoolFolder pool;
  CAY_ASSIGN(pool.state_, LockedFolder::open(path, kPassable));
  CAY_ASSIGN(pool.path_, absolutePath(path));
  CAY_ASSIGN(pool.new_, openFolderAt(pool.fd(), "new", kClosed));
  CAY_ASSIGN(pool.sandboxes_, openFolderAt(pool.fd(), "sandboxes", kClosed));
  CAY_ASSIGN(pool.trash_, openFolderAt(pool.fd(), "trash", kClosed));
  CAY_ASSIGN(Fd spares, openFolderAt(pool.fd(), "spares", kClosed));
  pool.spares_ = std::make_unique<layers::SpareFolders>(std::move(spares));
  CAY_ASSIGN(Fd disks, openFolderAt(pool.fd(), "disks", kClosed));
  pool.disks_ = std::make_unique<layers::DiskImages>(std::move(disks));
  CAY_TRY(openFolderAt(pool.fd(), "images", kClosed));
  return pool;
}

Result<> PoolFolder::fitFor(Mode mode, const std::optional<UserIds>& ids) {
  mode_ = mode;
  userIds_ = ids ? *ids : UserIds::choose(mode, name());
  const bool passable = mode == Mode::kRestricted;
  for (const Fd* folder : {&state_.folder, &sandboxes_}) {
    CAY_TRY(sys::chmodFd(folder->get(), passable ? kPassable : kClosed));
  }
  if (passable && ::geteuid() == 0) CAY_TRY(requirePassable(path_));
  return {};
}

layers::Shape PoolFolder::shapeOf(const PoolSpec& spec, size_t overlays) const {
  using layers::Part;
  layers::Shape shape;
  shape.parts.push_back({.path = kRecord, .mode = 0600, .kind = Part::Kind::kFile});
  shape.parts.push_back({.path = "execs"});
  shape.parts.push_back(
      {.path = std::string("execs/") + kSpareLog, .mode = 0600, .kind = Part::Kind::kFile});
  if (mode_ == Mode::kRestricted) {
    shape.name = "home";
    shape.mode = kPassable;
    for (const char* path : {"home", "home/.tmp", "home/.sbx", "home/.sbx/proxy"}) {
      shape.parts.push_back({.path = path, .owner = Part::Owner::kSandbox});
    }
  } else if (spec.limits.diskBytes > 0) {
    shape.name = "disk";  // which holds the tops
  } else {
    shape.name = "tops" + std::to_string(overlays);
    layers::addTops(shape, overlays);
  }
  return shape;
}

Result<> PoolFolder::build(const PoolRecord& record, const layers::Shape& shape) const {
  const char* id = record.id.c_str();
  CAY_TRY(spares_->take(shape, new_.get(), id, userIds_.first(record.slot)));
  CAY_TRY(fillRecord(new_.get(), recordPath(record), record));
  const uint64_t diskBytes = record.spec->limits.diskBytes;
  if (diskBytes == 0) return {};
  CAY_ASSIGN(const Fd folder, sys::openAt(new_.get(), id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return disks_->make(folder.get(), "disk.img", diskBytes);
}

Result<> PoolFolder::publish(const std::vector<PoolRecord>& records) const {
  // One of many that appear one after another must not stay if not all do.
  const std::string batch = std::string(kBatch) + records.front().id;
  if (records.size() > 1) {
    std::string ids;
    for (const PoolRecord& record : records) ids.append(record.id).append("\n");
    CAY_TRY(writeNew(new_.get(), batch, ids));
  }
  for (const PoolRecord& record : records) {
    const char* id = record.id.c_str();
    CAY_TRY(sys::renameAt(new_.get(), id, sandboxes_.get(), id));
  }
  if (records.size() > 1) CAY_TRY(sys::unlinkAt(new_.get(), batch.c_str()));
  return {};
}

Result<> PoolFolder::make(const std::vector<PoolRecord>& records, size_t overlays) const {
  const layers::Shape shape = shapeOf(*records.front().spec, overlays);
  Result<> made;
  for (size_t i = 0; made && i < records.size(); ++i) made = build(records[i], shape);
  if (made) made = publish(records);
  if (made) return {};
  for (const PoolRecord& record : records) {
    (void)sys::removeTree(sandboxes_.get(), record.id.c_str());
    (void)sys::removeTree(new_.get(), record.id.c_str());
  }
  (void)sys::unlinkAt(new_.get(), (std::string(kBatch) + records.front().id).c_str());
  return made;
}

Result<> PoolFolder::makeReady(const PoolRecord& record, size_t overlays) const {
  const char* id = record.id.c_str();
  auto made =
      spares_->take(shapeOf(*record.spec, overlays), new_.get(), id, userIds_.first(record.slot));
  if (made) {
    made = sys::renameAt(new_.get(), recordPath(record).c_str(), new_.get(),
                         readyPath(record).c_str());
  }
  if (made) made = sys::renameAt(new_.get(), id, sandboxes_.get(), id);
  if (!made) (void)sys::removeTree(new_.get(), id);
  return made;
}

Result<> PoolFolder::adopt(const PoolRecord& record) const {
  CAY_TRY(fillRecord(sandboxes_.get(), readyPath(record), record));
  return sys::renameAt(sandboxes_.get(), readyPath(record).c_str(), sandboxes_.get(),
                       recordPath(record).c_str());
}

Result<PoolFolder::Trashed> PoolFolder::discard(const std::string& id,
                                                std::optional<uint32_t> slot) const {
  const std::string name = slot ? id + "." + std::to_string(*slot) : id;
  CAY_TRY(sys::renameAt(sandboxes_.get(), id.c_str(), trash_.get(), name.c_str()));
  return Trashed{.prefix = kTrash + name + "/", .slot = slot, .shape = {}};
}

Result<> PoolFolder::remove(const Trashed& what) const {
  const size_t start = sizeof kTrash - 1;
  const std::string name = what.prefix.substr(start, what.prefix.size() - start - 1);
  if (what.shape) return spares_->giveBack(*what.shape, trash_.get(), name.c_str());
  return sys::removeTree(trash_.get(), name.c_str());
}

Result<> PoolFolder::sweepUnfinished() const {
  CAY_ASSIGN(const std::vector<std::string> names, namesIn(new_));
  for (const std::string& name : names) {
    if (!name.starts_with(kBatch)) continue;
    CAY_ASSIGN(const std::string ids, sys::readFileAt(new_.get(), name.c_str(), kMostRecordBytes));
    size_t at = 0;
    for (size_t end = ids.find('\n'); end != std::string::npos; end = ids.find('\n', at)) {
      const std::string id = ids.substr(at, end - at);
      at = end + 1;
      if (isId(kPoolIdPrefix, id) || isGivenId(id))
        CAY_TRY(sys::removeTree(sandboxes_.get(), id.c_str()));
    }
  }
  for (const std::string& name : names) CAY_TRY(sys::removeTree(new_.get(), name.c_str()));
  return {};
}

std::optional<uint32_t> PoolFolder::slotByFiles(const std::string& id) const {
  if (userIds_.isOwn()) return std::nullopt;
  for (const char* path : {"/home", "/tops/0/upper"}) {
    const auto stat = sys::statAt(sandboxes_.get(), (id + path).c_str());
    const uint32_t slot = stat ? (stat->st_uid - userIds_.base) / userIds_.step : userIds_.slots;
    if (slot < userIds_.slots) return slot;
  }
  return std::nullopt;
}

std::optional<uint32_t> PoolFolder::readySlot(const std::string& id) const {
  const auto folder =
      sys::openAt(sandboxes_.get(), id.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const auto names = folder ? namesIn(*folder) : std::unexpected(folder.error());
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (!name.starts_with(kReady)) continue;
    if (const auto slot = parseUint(std::string_view(name).substr(kReady.size()))) {
      return static_cast<uint32_t>(*slot);
    }
  }
  return std::nullopt;
}

Result<PoolFolder::Found> PoolFolder::recover() const {
  CAY_TRY(sweepUnfinished());
  Found found;
  CAY_ASSIGN(const std::vector<std::string> trashed, namesIn(trash_));
  for (const std::string& name : trashed) {
    const size_t dot = name.find('.');
    const auto slot =
        dot == std::string::npos ? std::nullopt : parseUint(std::string_view(name).substr(dot + 1));
    found.trash.push_back({.prefix = kTrash + name + "/", .slot = {}, .shape = {}});
    if (slot) found.trash.back().slot = static_cast<uint32_t>(*slot);
  }
  CAY_ASSIGN(const std::vector<std::string> names, namesIn(sandboxes_));
  for (const std::string& name : names) {
    const std::string path = name + "/" + kRecord;
    auto text = sys::readFileAt(sandboxes_.get(), path.c_str(), kMostRecordBytes);
    auto record = text ? parseRecord(*text) : std::unexpected(text.error());
    if (record && record->id == name) {
      found.records.push_back(std::move(*record));
      continue;
    }
    const auto ready = readySlot(name);
    if (!ready) {
      log(Level::kError, "the record of a sandbox is broken",
          {{"sandbox", name}, {"error", record ? "it is another's" : record.error().message}});
    }
    CAY_ASSIGN(Trashed what, discard(name, ready ? ready : slotByFiles(name)));
    found.trash.push_back(std::move(what));
  }
  return found;
}

}  // namespace cay::sandbox
