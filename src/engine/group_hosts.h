// How members of a network group find each other: by their hosts files, which are rewritten in
// place whenever one comes or goes, so that what is mounted into jobs stays the same file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/job.h"

namespace cay::engine {

struct GroupMember {
  std::string address;
  std::vector<std::string> aliases;
};

// All members of a group are "<group>.group.internal"; those with an alias "<group>-<alias>" too.
std::string groupHostname(std::string_view group);
std::string groupPrefix(std::string_view group);
// What tells a job of its group; empty without one.
Pairs groupEnvironment(const JobSpec& spec);

// The file of the job `id` at `address` (may be empty), in a group by that name (may be empty).
std::string hostsText(std::string_view id, std::string_view address, std::string_view group,
                      const std::vector<GroupMember>& members);

class GroupHosts {
 public:
  struct Job {
    std::string id;
    std::string address;    // empty: it has none
    std::string group;      // unique; empty: alone
    std::string groupName;  // as clients know it
    std::vector<std::string> aliases;
    std::string file;  // its hosts file; made if it is not there
  };

  // kInvalid for names that are no host names. If a file cannot be written, that of the new job or
  // of another member, the error says so and the job has not joined.
  Result<> join(Job job);
  void leave(std::string_view id);

 private:
  Result<> rewrite(std::string_view group);

  std::map<std::string, Job, std::less<>> jobs_;
};

}  // namespace cay::engine
