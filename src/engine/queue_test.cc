#include "engine/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace cay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Resources memory(uint64_t bytes) {
  return {.memoryBytes = bytes};
}
Resources gpus(uint32_t count, uint64_t bytes = 1) {
  return {.memoryBytes = bytes, .gpus = count};
}

TEST(QueueTest, TakesThemInOrderUpToWhatMayStart) {
  Queue queue({.memoryBytes = 100, .gpus = 0, .starting = 2, .jobs = 3});
  for (const char* id : {"a", "b", "c", "d"}) queue.add(id, memory(10));
  EXPECT_THAT(queue.admit(), ElementsAre("a", "b"));
  EXPECT_THAT(queue.admit(), IsEmpty());
  EXPECT_EQ(queue.place("c")->lacking, "others to start");
  queue.started("a");
  EXPECT_THAT(queue.admit(), ElementsAre("c"));
  queue.started("b");
  queue.started("c");
  EXPECT_THAT(queue.admit(), IsEmpty());
  EXPECT_EQ(queue.place("d")->lacking, "the number of jobs");
  queue.remove("a");
  EXPECT_THAT(queue.admit(), ElementsAre("d"));
}

TEST(QueueTest, ProcessorsAreNeverAReasonToWait) {
  Queue queue({.memoryBytes = 100, .gpus = 0, .starting = 500, .jobs = 500});
  for (int i = 0; i < 100; ++i) {
    queue.add("j" + std::to_string(i), {.milliCpus = 64'000, .memoryBytes = 1});
  }
  EXPECT_EQ(queue.admit().size(), 100U);
}

TEST(QueueTest, TellsPlacesAndWhatIsLacking) {
  Queue queue({.memoryBytes = 100, .gpus = 1, .starting = 10, .jobs = 10});
  queue.add("a", memory(90));
  queue.add("g", gpus(1));
  queue.add("b", memory(20));
  queue.add("h", gpus(1));
  EXPECT_THAT(queue.admit(), ElementsAre("a", "g"));
  const auto places = queue.waiting();
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].id, "b");
  EXPECT_EQ(places[0].position, 1U);
  EXPECT_EQ(places[0].lacking, "memory");
  EXPECT_EQ(places[1].position, 2U);
  EXPECT_EQ(places[1].lacking, "GPUs");
  EXPECT_FALSE(queue.place("a"));
  EXPECT_FALSE(queue.place("x"));
}

TEST(QueueTest, SmallOnesPassALargeOneButNotForEver) {
  Queue queue({.memoryBytes = 100, .gpus = 0, .starting = 1000, .jobs = 1000});
  queue.add("first", memory(60));
  EXPECT_THAT(queue.admit(), ElementsAre("first"));
  queue.add("large", memory(80));
  uint32_t passed = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string id = "s" + std::to_string(i);
    queue.add(id, memory(1));
    for (const std::string& admitted : queue.admit()) {
      ASSERT_NE(admitted, "large");
      ++passed;
      queue.remove(admitted);  // it is over at once, and the next could take its place
    }
  }
  EXPECT_EQ(passed, Queue::kMostOvertakes);
  EXPECT_EQ(queue.waiting().back().lacking, "its turn");
  queue.remove("first");
  const auto admitted = queue.admit();
  ASSERT_FALSE(admitted.empty());
  EXPECT_EQ(admitted.front(), "large");
}

TEST(QueueTest, OneThatWaitsForAGpuDoesNotHoldUpOthers) {
  Queue queue({.memoryBytes = 1000, .gpus = 2, .starting = 1000, .jobs = 10000});
  queue.add("holder", gpus(1));
  EXPECT_THAT(queue.admit(), ElementsAre("holder"));
  queue.add("both", gpus(2));
  for (uint32_t i = 0; i < Queue::kMostOvertakes * 2; ++i) {
    const std::string id = "c" + std::to_string(i);
    queue.add(id, memory(1));
    EXPECT_THAT(queue.admit(), ElementsAre(id));
  }
  queue.add("one", gpus(1));
  EXPECT_THAT(queue.admit(), IsEmpty()) << "there is a GPU, but it is kept for the other";
  EXPECT_EQ(queue.place("one")->lacking, "its turn");
  queue.remove("holder");
  EXPECT_THAT(queue.admit(), ElementsAre("both"));
}

TEST(QueueTest, FoundJobsCountEvenIfTheyAreTooMany) {
  Queue queue({.memoryBytes = 100, .gpus = 1, .starting = 2, .jobs = 10});
  queue.claim("a", memory(80));
  queue.claim("b", gpus(2, 80));
  queue.claim("b", gpus(2, 80));
  queue.add("c", memory(1));
  EXPECT_THAT(queue.admit(), IsEmpty());
  queue.remove("a");
  EXPECT_THAT(queue.admit(), ElementsAre("c"));
  queue.add("g", gpus(1));
  EXPECT_THAT(queue.admit(), IsEmpty());
  queue.remove("b");
  EXPECT_THAT(queue.admit(), ElementsAre("g"));
}

TEST(QueueTest, WhatCanNeverStartIsKnownBefore) {
  const Queue queue({.memoryBytes = 100, .gpus = 1, .starting = 2, .jobs = 10});
  EXPECT_TRUE(queue.possible(memory(100)));
  EXPECT_FALSE(queue.possible(memory(101)));
  EXPECT_FALSE(queue.possible(gpus(2)));
}

TEST(QueueTest, EndsAreTakenTwiceAndUnknownOnesIgnored) {
  Queue queue({.memoryBytes = 100, .gpus = 1, .starting = 1, .jobs = 10});
  queue.add("a", memory(100));
  EXPECT_THAT(queue.admit(), ElementsAre("a"));
  queue.started("a");
  queue.started("a");
  queue.remove("a");
  queue.remove("a");
  queue.started("a");
  queue.add("b", memory(100));
  EXPECT_THAT(queue.admit(), ElementsAre("b"));
  queue.remove("b");  // while it is starting
  queue.add("c", memory(100));
  queue.add("d", memory(1));
  queue.remove("c");  // while it waits
  EXPECT_THAT(queue.admit(), ElementsAre("d"));
}

// Random jobs of all sizes that start, run and end in random order, next to a model that knows what
// is used.
class RandomJobs : public ::testing::TestWithParam<uint32_t> {
 protected:
  static constexpr Queue::Capacity kCapacity{
      .memoryBytes = 1000, .gpus = 4, .starting = 5, .jobs = 40};

  uint32_t upTo(uint32_t most) { return std::uniform_int_distribution<uint32_t>(0, most)(random_); }

  Resources anyNeeds() {
    if (upTo(9) == 0) return gpus(1 + upTo(3), 1 + upTo(300));
    return memory(upTo(19) == 0 ? 500 + upTo(500) : 1 + upTo(60));
  }
  void check() const {
    uint64_t memoryUsed = 0;
    uint32_t gpusUsed = 0;
    for (const auto& [id, needs] : running_) {
      memoryUsed += needs.memoryBytes;
      gpusUsed += needs.gpus;
    }
    ASSERT_LE(memoryUsed, kCapacity.memoryBytes);
    ASSERT_LE(gpusUsed, kCapacity.gpus);
    ASSERT_LE(starting_.size(), kCapacity.starting);
    ASSERT_LE(running_.size(), kCapacity.jobs);
  }
  void addOne() {
    const std::string id = "j" + std::to_string(made_++);
    waiting_[id] = {anyNeeds(), admissions_};
    queue_.add(id, waiting_[id].first);
  }
  void admit() {
    for (const std::string& id : queue_.admit()) {
      const auto found = waiting_.find(id);
      ASSERT_NE(found, waiting_.end()) << id << " did not wait";
      longestWait_ = std::max(longestWait_, admissions_ - found->second.second);
      running_[id] = found->second.first;
      starting_.insert(id);
      waiting_.erase(found);
      ++admissions_;
      check();
    }
  }
  void startOne() {
    if (starting_.empty()) return;
    queue_.started(*starting_.begin());
    starting_.erase(starting_.begin());
  }
  void endOne() {
    if (running_.empty()) return;
    const auto at = std::next(running_.begin(), upTo(static_cast<uint32_t>(running_.size()) - 1));
    queue_.remove(at->first);
    starting_.erase(at->first);
    running_.erase(at);
  }

  std::mt19937 random_{GetParam()};
  Queue queue_{kCapacity};
  std::map<std::string, std::pair<Resources, uint64_t>> waiting_;  // needs, admissions before it
  std::map<std::string, Resources> running_;
  std::set<std::string> starting_;
  uint64_t made_ = 0;
  uint64_t admissions_ = 0;
  uint64_t longestWait_ = 0;
};

TEST_P(RandomJobs, NeverUseMoreThanThereIsAndAllGetTheirTurn) {
  for (int step = 0; step < 6000; ++step) {
    switch (upTo(4)) {
      case 0:
      case 1:
        // At most so many wait, so a wait can be bounded at all.
        if (waiting_.size() < 50) addOne();
        break;
      case 2:
        startOne();
        break;
      default:
        endOne();
    }
    admit();
    check();
    if (HasFatalFailure()) return;
    ASSERT_EQ(queue_.waiting().size(), waiting_.size());
  }
  EXPECT_GT(admissions_, 1000U);
  // Each that waits is passed so often at most by itself, and may have to wait for all in front.
  EXPECT_LE(longestWait_, 50U * (Queue::kMostOvertakes + 1));
  // Then no more come: everything that waits runs in the end, whatever its size.
  while (!waiting_.empty()) {
    ASSERT_FALSE(running_.empty()) << waiting_.size() << " wait although nothing runs";
    startOne();
    endOne();
    admit();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomJobs, ::testing::Range(1U, 13U));

}  // namespace
}  // namespace cay::engine
