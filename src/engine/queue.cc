#include "engine/queue.h"

#include <algorithm>
#include <utility>

namespace cay::engine {

bool Queue::possible(const Resources& needs) const {
  return needs.memoryBytes <= capacity_.memoryBytes && needs.gpus <= capacity_.gpus;
}

void Queue::add(std::string id, const Resources& needs) {
  waiting_.push_back({.id = std::move(id), .needs = needs});
}

void Queue::claim(std::string id, const Resources& needs) {
  take(std::move(id), needs, /*starting=*/false);
}

void Queue::take(std::string id, const Resources& needs, bool starting) {
  const auto [at, fresh] = taken_.emplace(std::move(id), Taken{needs, starting});
  if (!fresh) return;
  usedMemory_ += needs.memoryBytes;
  usedGpus_ += needs.gpus;
  if (starting) ++starting_;
}

// By subtraction, since running jobs that were found may use more than there is.
bool Queue::lacksMemory(const Resources& needs) const {
  const uint64_t left = capacity_.memoryBytes - std::min(capacity_.memoryBytes, usedMemory_);
  return needs.memoryBytes > left;
}

bool Queue::lacksGpus(const Resources& needs) const {
  return needs.gpus > capacity_.gpus - std::min(capacity_.gpus, usedGpus_);
}

std::string_view Queue::lackOf(const Resources& needs, const Held& held) const {
  if (lacksGpus(needs)) return "GPUs";
  if (lacksMemory(needs)) return "memory";
  if ((held.gpus && needs.gpus > 0) || (held.memory && needs.memoryBytes > 0)) return "its turn";
  if (taken_.size() >= capacity_.jobs) return "the number of jobs";
  if (starting_ >= capacity_.starting) return "others to start";
  return "";
}

void Queue::holdFor(const Waiting& job, Held& held) const {
  if (job.overtaken < kMostOvertakes) return;
  held.gpus = held.gpus || lacksGpus(job.needs);
  held.memory = held.memory || lacksMemory(job.needs);
}

std::vector<std::string> Queue::admit() {
  std::vector<std::string> admitted;
  Held held;
  std::vector<Waiting*> passed;  // those in front of the one that is looked at
  for (auto job = waiting_.begin(); job != waiting_.end();) {
    // Nobody else can start either.
    if (starting_ >= capacity_.starting || taken_.size() >= capacity_.jobs) break;
    if (!lackOf(job->needs, held).empty()) {
      holdFor(*job, held);
      passed.push_back(&*job);
      ++job;
      continue;
    }
    for (Waiting* one : passed) {
      ++one->overtaken;
      holdFor(*one, held);
    }
    take(job->id, job->needs, /*starting=*/true);
    admitted.push_back(std::move(job->id));
    job = waiting_.erase(job);
  }
  return admitted;
}

void Queue::started(std::string_view id) {
  const auto found = taken_.find(id);
  if (found == taken_.end() || !found->second.starting) return;
  found->second.starting = false;
  --starting_;
}

void Queue::remove(std::string_view id) {
  if (std::erase_if(waiting_, [&](const Waiting& job) { return job.id == id; }) > 0) return;
  const auto found = taken_.find(id);
  if (found == taken_.end()) return;
  const Taken& job = found->second;
  usedMemory_ -= job.needs.memoryBytes;
  usedGpus_ -= job.needs.gpus;
  if (job.starting) --starting_;
  taken_.erase(found);
}

std::vector<Queue::Place> Queue::waiting() const {
  std::vector<Place> places;
  Held held;
  for (const Waiting& job : waiting_) {
    std::string_view lack = lackOf(job.needs, held);
    // Nothing, but admit() has not been asked since it became free.
    if (lack.empty()) lack = "its turn";
    places.push_back({.id = job.id, .position = places.size() + 1, .lacking = lack});
    holdFor(job, held);
  }
  return places;
}

std::optional<Queue::Place> Queue::place(std::string_view id) const {
  for (const Place& one : waiting()) {
    if (one.id == id) return one;
  }
  return std::nullopt;
}

}  // namespace cay::engine
