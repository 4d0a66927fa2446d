// How many sandboxes come and go in a second, for clients that each wait for one answer before they
// ask for the next.
#include <algorithm>
#include <mutex>

#include "measure.h"
#include "parallel.h"
#include "pool_client.h"
#include "pool_host.h"
#include "samples.h"
#include "spawn.h"

namespace cay::bench {
namespace {

// What several clients did to many sandboxes.
struct Crowd {
  Samples times;
  double seconds = 0;
  [[nodiscard]] std::string perSecond(size_t count) const {
    return decimal(static_cast<double>(count) / seconds, 0);
  }
};

// Has `clients` threads share the boxes among them; `work` is timed for each box.
template <typename Work>
Crowd forEach(std::vector<Box>& boxes, size_t clients, const PoolHost& host, const Work& work) {
  Crowd crowd;
  std::mutex mutex;
  std::atomic<size_t> next = 0;
  const auto start = Clock::now();
  inParallel(clients, [&] {
    PoolClient client(host);
    Samples times;
    for (size_t i = next++; i < boxes.size(); i = next++)
      times.time([&] { work(client, boxes[i]); });
    const std::scoped_lock lock(mutex);
    crowd.times.add(times);
    return size_t{0};
  });
  crowd.seconds = secondsSince(start);
  return crowd;
}

std::string both(const Samples& times) {
  return millis(times.median()) + ", " + millis(times.percentile(99));
}

void measureBehind(const Settings& settings, Report& report, const std::string& walls) {
  const PoolHost host(settings.host, walls);
  const size_t count = settings.quick ? 200 : 2000;
  for (const size_t clients : {1, 8}) {
    const std::string who =
        std::to_string(clients) + (clients == 1 ? " client (" : " clients (") + walls + ")";
    progress("creates and deletes, " + who);
    std::vector<Box> boxes(count);
    const Crowd made =
        forEach(boxes, clients, host, [](PoolClient& client, Box& box) { box = client.create(); });
    const Crowd ended =
        forEach(boxes, clients, host, [](PoolClient& client, Box& box) { client.remove(box); });
    host.settle();
    report.add("creates/s, " + who, made.perSecond(count)).note("p50, p99: " + both(made.times));
    report.add("deletes/s, " + who, ended.perSecond(count)).note("p50, p99: " + both(ended.times));
  }
}

}  // namespace

void measurePoolRate(const Settings& settings, Report& report) {
  for (const char* walls : {"full", "restricted"}) measureBehind(settings, report, walls);
}

void measurePoolCycles(const Settings& settings, Report& report) {
  constexpr size_t kClients = 8;
  constexpr size_t kCycles = 1000;
  constexpr double kPromised = 3;
  for (const std::string walls : {"full", "restricted"}) {
    progress("create + exec + delete, walls: " + walls);
    const PoolHost host(settings.host, walls);
    Samples bare;
    Samples cycles;
    for (int round = 0; round < (settings.quick ? 1 : 3); ++round) {
      const auto start = Clock::now();
      inParallel(kClients, [] {
        for (size_t i = 0; i < kCycles / kClients; ++i) spawnAndWait({"/bin/true"});
        return size_t{0};
      });
      bare.add(secondsSince(start));
      std::vector<Box> boxes(kCycles);
      cycles.add(forEach(boxes, kClients, host, [](PoolClient& client, Box& box) {
                   box = client.create();
                   client.exec(box);
                   client.remove(box);
                 }).seconds);
      host.settle();
    }
    report
        .add("1000 × create + exec + delete, 8 clients (" + walls + ")",
             decimal(cycles.median(), 2) + " s")
        .beside(decimal(bare.median(), 2) + " s posix_spawn", cycles.median() / bare.median())
        .promise("< " + decimal(kPromised, 0) + " s", cycles.median() < kPromised);
  }
}

}  // namespace cay::bench
