// The networks of jobs, each a namespace that hangs on the router. For cay-net, which keeps a
// descriptor of each: they live as long as it does.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/router.h"
#include "sys/netlink.h"

namespace cay::engine {

struct MadeNetwork {
  Fd space;
  std::string address;  // empty: it has a loopback only
  std::string group;    // empty: alone
};

class NetworkTable {
 public:
  explicit NetworkTable(Router& router) : router_(router) {}

  // A new one, alone or as a member of a group; kExhausted when there is no room. kUnreachable for
  // a group where no links can be made.
  Result<uint32_t> make(const std::string& group);
  // kNotFound if there is none.
  Result<const MadeNetwork*> find(uint32_t number) const;
  // What is still in it has a loopback only.
  Result<> takeDown(uint32_t number);
  // Gone for all who ask, and taken down later: that takes the kernel longer than making one.
  Result<> leave(uint32_t number);
  [[nodiscard]] size_t leaving() const { return leaving_.size(); }
  void takeDownOneThatLeft();
  // As the job sees it; zeros without a link.
  Result<sys::LinkTraffic> traffic(uint32_t number);
  // A TCP socket in it.
  Result<Fd> socket(uint32_t number, int family);
  [[nodiscard]] std::vector<uint32_t> numbers() const;
  // Some process is, or may be, in one of them.
  [[nodiscard]] bool inhabited() const;

 private:
  struct Entry {
    MadeNetwork network;
    std::string link;     // in the router; empty: none
    uint32_t member = 0;  // of its group
    bool hasLeft = false;
  };
  struct Group {
    uint32_t number = 0;
    std::set<uint32_t> members;
    uint32_t next = 0;
  };

  Result<> connectAlone(uint32_t number, Entry& entry, sys::Netlink& inside);
  Result<> connectMember(uint32_t number, Entry& entry, sys::Netlink& inside);
  Result<Group*> groupOf(const std::string& name);
  // Removes the bridge with its last member.
  Result<> leaveGroup(const Entry& entry);

  Router& router_;
  std::map<uint32_t, Entry> entries_;
  std::map<std::string, Group> groups_;
  std::deque<uint32_t> leaving_;
  // Numbers are given out in turn, so that what comes late for one job does not reach another.
  uint32_t nextNetwork_ = 0;
  uint32_t nextGroup_ = 0;
};

}  // namespace cay::engine
