// Sandboxes that stand ready before they are asked for, with their keepers and walls: the first
// command of one that is taken from here waits for none of that.
//
// As many of a kind are kept as there were first commands in sandboxes of that kind within the last
// minute, so a host that nobody uses keeps none, and neither does one whose sandboxes are only
// made. Pure bookkeeping, on the loop's thread only: the registry makes them and takes them away.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "isolation/plan.h"
#include "net/task.h"
#include "sandbox/pooled.h"

namespace cay::sandbox {

class ReadySandboxes {
 public:
  static constexpr int64_t kMemoryMs = 60'000;

  // What a keeper's walls are made of. Only what may be alike is kept ready: no sandbox with a
  // disk, a network or a time of its own.
  struct Kind {
    std::string image;
    isolation::Network network = isolation::Network::kHost;
    isolation::Limits limits;
    std::vector<isolation::Bind> binds;
    std::vector<std::string> devices;

    // nullopt: none like this is kept.
    static std::optional<Kind> of(const PoolSpec& spec);
    bool operator==(const Kind&) const = default;
  };
  struct Ways {
    std::function<net::Task<PooledPtr>(Kind)> make;  // nullptr if that cannot be done now
    std::function<void(const PooledPtr&)> takeAway;
  };

  ReadySandboxes(boost::asio::io_context& io, Ways ways) : io_(io), ways_(std::move(ways)) {}
  ReadySandboxes(const ReadySandboxes&) = delete;
  ReadySandboxes& operator=(const ReadySandboxes&) = delete;

  // How many there may be, of all kinds together. Those beyond that are taken away.
  void setMost(size_t most);

  // A sandbox like this has got its first work.
  void used(const PoolSpec& spec, int64_t nowMs);
  // One like this that is in nobody's hands yet, or nullptr.
  PooledPtr take(const PoolSpec& spec);
  // To be called a few times a second.
  void tick(int64_t nowMs);

  [[nodiscard]] const std::vector<PooledPtr>& waiting() const { return waiting_; }
  // One more is being made.
  [[nodiscard]] bool filling() const { return filling_; }

 private:
  struct Use {
    Kind kind;
    int64_t atMs;
  };

  [[nodiscard]] size_t wanted(const Kind& kind) const;
  [[nodiscard]] size_t had(const Kind& kind) const;
  // A kind of which there are fewer than wanted.
  [[nodiscard]] std::optional<Kind> lacking() const;
  void takeSurplusAway();
  net::Task<> fill();

  boost::asio::io_context& io_;
  Ways ways_;
  size_t most_ = 0;
  std::deque<Use> uses_;            // oldest first, no more than may be kept
  std::vector<PooledPtr> waiting_;  // oldest first
  bool filling_ = false;
};

}  // namespace cay::sandbox
