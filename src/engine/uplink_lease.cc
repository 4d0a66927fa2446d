#include "engine/uplink_lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "engine/address_plan.h"
#include "engine/net_space.h"
#include "engine/router_rules.h"
#include "engine/tool.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/netlink.h"

namespace cay::engine {
namespace {

constexpr std::string_view kUplink = "uplink.";
constexpr char kLock[] = "lock";
constexpr mode_t kOwnerOnly = 0600;

Result<bool> lockNow(const Fd& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return failSys("lock of an uplink", errno);
}

// Until it goes out of scope.
Result<Fd> lockFolder(const Fd& folder) {
  CAY_ASSIGN(Fd file, sys::openAt(folder.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW, kOwnerOnly));
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failSys("lock of the uplinks", errno);
  }
  return file;
}

std::optional<uint32_t> uplinkNumber(std::string_view fileName) {
  if (!fileName.starts_with(kUplink)) return std::nullopt;
  const auto number = parseUint(fileName.substr(kUplink.size()));
  if (!number || *number >= kMaxUplinks) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

std::string uplinkFile(uint32_t number) {
  return std::string(kUplink) + std::to_string(number);
}

std::string forwardingOf(const std::string& link) {
  return "ipv4/conf/" + link + "/forwarding";
}

Result<> removeFromMachine(uint32_t uplink) {
  const auto unruled = runTool("nft", {"-f", "-"}, withoutMachineRules(uplink));
  // Where there is no nft, there are no rules of it.
  if (!unruled && unruled.error().code != Code::kNotFound) return std::unexpected(unruled.error());
  CAY_ASSIGN(sys::Netlink machine, sys::Netlink::open());
  if (auto removed = machine.removeLink(machineLink(uplink));
      !removed && removed.error().code != Code::kNotFound) {
    return removed;
  }
  return {};
}

}  // namespace

Result<UplinkLease> UplinkLease::take(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  CAY_ASSIGN(Fd opened, sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(opened.get()));
  if (stat.st_uid != ::geteuid() || (stat.st_mode & 022) != 0) {
    return fail(Code::kInvalid, folder + " can be changed by others");
  }
  CAY_ASSIGN(const Fd own, ownNetSpace());
  CAY_ASSIGN(std::string space, netSpaceName(own));
  UplinkLease lease(std::move(opened), std::move(space));
  CAY_ASSIGN(const Fd lock, lockFolder(lease.folder_));
  CAY_TRY(lease.cleanUp());
  for (uint32_t number = 0; number < kMaxUplinks; ++number) {
    CAY_ASSIGN(const bool taken, lease.takeNumber(number));
    if (taken) return lease;
  }
  return fail(Code::kExhausted, "all uplinks are taken");
}

Result<bool> UplinkLease::takeNumber(uint32_t number) {
  auto file = sys::openAt(folder_.get(), uplinkFile(number).c_str(),
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, kOwnerOnly);
  if (!file && file.error().code == Code::kConflict) return false;
  if (!file) return std::unexpected(std::move(file).error());
  CAY_ASSIGN(const bool locked, lockNow(*file));
  if (!locked) return false;
  CAY_TRY(sys::writeAll(file->get(), space_));
  number_ = number;
  file_ = std::move(*file);
  return true;
}

Result<> UplinkLease::cleanUp() {
  CAY_ASSIGN(const auto entries, sys::readDirectory(folder_.get()));
  for (const sys::DirEntry& entry : entries) {
    const auto number = uplinkNumber(entry.name);
    if (!number) continue;
    CAY_ASSIGN(const Fd file, sys::openAt(folder_.get(), entry.name.c_str(), O_RDWR | O_NOFOLLOW));
    CAY_ASSIGN(const bool dead, lockNow(file));
    CAY_ASSIGN(const std::string space, sys::readFileAt(folder_.get(), entry.name.c_str()));
    if (!dead || space != space_) continue;
    CAY_TRY(removeFromMachine(*number));
    CAY_TRY(sys::unlinkAt(folder_.get(), entry.name.c_str()));
  }
  return {};
}

std::string UplinkLease::noteOf(const std::string& link) const {
  return "forwards." + space_ + "." + link;
}

Result<std::vector<std::string>> UplinkLease::notForwarding(
    const std::vector<std::string>& links) const {
  CAY_ASSIGN(const Fd lock, lockFolder(folder_));
  std::vector<std::string> found;
  for (const std::string& link : links) {
    CAY_ASSIGN(const std::string value, netSetting(forwardingOf(link)));
    if (value == "0" || sys::statAt(folder_.get(), noteOf(link).c_str())) found.push_back(link);
  }
  return found;
}

Result<> UplinkLease::openForwarding(const std::vector<std::string>& links) {
  CAY_ASSIGN(const Fd lock, lockFolder(folder_));
  for (const std::string& link : links) {
    CAY_ASSIGN(const std::string value, netSetting(forwardingOf(link)));
    if (value != "0") continue;
    // Noted first: what is noted is put back, whenever we die.
    CAY_TRY(sys::openAt(folder_.get(), noteOf(link).c_str(), O_WRONLY | O_CREAT, kOwnerOnly));
    CAY_TRY(setNetSetting(forwardingOf(link), "1"));
  }
  return {};
}

Result<> UplinkLease::giveBack() {
  CAY_ASSIGN(const Fd lock, lockFolder(folder_));
  CAY_TRY(removeFromMachine(number_));
  CAY_TRY(sys::unlinkAt(folder_.get(), uplinkFile(number_).c_str()));
  return stopForwarding();
}

Result<> UplinkLease::stopForwarding() {
  CAY_ASSIGN(const auto entries, sys::readDirectory(folder_.get()));
  for (const sys::DirEntry& entry : entries) {
    if (!uplinkNumber(entry.name)) continue;
    CAY_ASSIGN(const std::string space, sys::readFileAt(folder_.get(), entry.name.c_str()));
    if (space == space_) return {};  // others still need it
  }
  const std::string notes = noteOf("");
  for (const sys::DirEntry& entry : entries) {
    if (!entry.name.starts_with(notes)) continue;
    const std::string link = entry.name.substr(notes.size());
    CAY_TRY(setNetSettingIfThere(forwardingOf(link), "0"));
    CAY_TRY(sys::unlinkAt(folder_.get(), entry.name.c_str()));
  }
  return {};
}

}  // namespace cay::engine
