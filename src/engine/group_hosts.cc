#include "engine/group_hosts.h"

#include <fcntl.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr mode_t kForAll = 0644;
constexpr size_t kLongestLabel = 63;

bool isLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && text.front() != '-' &&
         text.back() != '-' && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// Not by a new file, which a mount of the old one would not see. Whoever reads meanwhile finds the
// old text or the beginning of the new one.
Result<> writeInPlace(const std::string& file, std::string_view text) {
  CAY_ASSIGN(const Fd fd,
             sys::openAt(AT_FDCWD, file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW, kForAll));
  CAY_TRY(sys::chmodFd(fd.get(), kForAll));
  CAY_TRY(sys::pwriteAll(fd.get(), text, 0));
  return sys::truncateFd(fd.get(), text.size());
}

}  // namespace

std::string groupHostname(std::string_view group) {
  return std::string(group) + ".group.internal";
}

std::string groupPrefix(std::string_view group) {
  return std::string(group) + "-";
}

Pairs groupEnvironment(const JobSpec& spec) {
  if (spec.group.empty()) return {};
  return {{"HF_NETWORK_GROUP_HOSTNAME", groupHostname(spec.groupName)},
          {"HF_NETWORK_GROUP_PREFIX", groupPrefix(spec.groupName)}};
}

std::string hostsText(std::string_view id, std::string_view address, std::string_view group,
                      const std::vector<GroupMember>& members) {
  std::string out = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n";
  const auto line = [&](std::string_view at, std::string_view name) {
    out.append(at).append(" ").append(name).append("\n");
  };
  line(address.empty() ? "127.0.0.1" : address, id);
  for (const GroupMember& member : members) {
    line(member.address, groupHostname(group));
    for (const std::string& alias : member.aliases)
      line(member.address, groupPrefix(group) + alias);
  }
  return out;
}

Result<> GroupHosts::join(Job job) {
  if (!isLabel(job.id)) return fail(Code::kInvalid, quoted(job.id) + " is no host name");
  if (!job.group.empty()) {
    if (!isLabel(job.groupName)) {
      return fail(Code::kInvalid, "network group " + quoted(job.groupName) + " is no host name");
    }
    for (const std::string& alias : job.aliases) {
      if (!isLabel(alias)) {
        return fail(Code::kInvalid, "alias " + quoted(alias) + " is no host name");
      }
    }
  }
  if (job.group.empty()) {
    CAY_TRY(writeInPlace(job.file, hostsText(job.id, job.address, {}, {})));
    jobs_.insert_or_assign(job.id, std::move(job));
    return {};
  }
  const std::string id = job.id;
  const std::string group = job.group;
  jobs_.insert_or_assign(id, std::move(job));
  auto written = rewrite(group);
  if (!written) leave(id);
  return written;
}

void GroupHosts::leave(std::string_view id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const std::string group = job->second.group;
  jobs_.erase(job);
  if (group.empty()) return;
  if (const auto written = rewrite(group); !written) {
    log(Level::kWarn, "a hosts file still names a job that is gone",
        {{"error", written.error().message}});
  }
}

Result<> GroupHosts::rewrite(std::string_view group) {
  std::vector<GroupMember> members;
  for (const auto& [id, job] : jobs_) {
    if (job.group == group) members.push_back({.address = job.address, .aliases = job.aliases});
  }
  Result<> first;
  for (const auto& [id, job] : jobs_) {
    if (job.group != group) continue;
    auto written = writeInPlace(job.file, hostsText(id, job.address, job.groupName, members));
    if (!written && first) first = std::move(written);
  }
  return first;
}

}  // namespace cay::engine
