// Many sandboxes at once: how long it takes to make them and what each of them costs in memory.
#include <chrono>
#include <thread>

#include "machine.h"
#include "measure.h"
#include "parallel.h"
#include "pool_client.h"
#include "pool_host.h"
#include "samples.h"

namespace cay::bench {
namespace {

constexpr size_t kClients = 8;

std::string kibibytes(double bytes) {
  return decimal(bytes / 1024, 1) + " KiB";
}

struct Memory {
  double available = availableBytes();
  double occupied = occupiedBytes();
};

// The kernel frees what was just closed a moment later.
Memory memoryAtRest() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return {};
}

void makeSandboxes(const PoolHost& host, size_t count, bool withKeepers) {
  inParallel(kClients, [&] {
    PoolClient client(host);
    for (size_t i = 0; i < count / kClients; ++i) {
      const Box box = client.create();
      if (withKeepers) client.exec(box);
    }
    return size_t{0};
  });
}

// Of the host's own processes: itself and its nursery, which share nothing of this.
double memoryOfKeepers(const PoolHost& host, size_t& count) {
  double sum = 0;
  for (const pid_t pid : processesOf(host.program())) {
    if (pid == host.process().pid()) continue;
    sum += proportionalBytes(pid);
    ++count;
  }
  return sum;
}

void measureHolding(const Settings& settings, Report& report, size_t count, bool withKeepers) {
  const std::string what =
      std::to_string(count) + " sandboxes " + (withKeepers ? "with" : "without") + " a keeper each";
  progress(what);
  const double promised = (withKeepers ? 250 : 20) * 1024;
  const PoolHost host(settings.host, "full");
  makeSandboxes(host, kClients, withKeepers);  // what the first ones cost is no part of it
  host.empty();
  const double hostBefore = residentBytes(host.process().pid());
  const Memory before = memoryAtRest();
  const auto start = Clock::now();
  makeSandboxes(host, count, withKeepers);
  const double seconds = secondsSince(start);
  const Memory after = memoryAtRest();
  const auto each = [&](double bytes) { return bytes / static_cast<double>(count); };

  report.add(what + ": made in", decimal(seconds, 2) + " s")
      .note(decimal(static_cast<double>(count) / seconds, 0) + "/s");
  const double available = each(before.available - after.available);
  report.add(what + ": MemAvailable less by, each", kibibytes(available))
      .promise("≤ " + kibibytes(promised), available <= promised);
  const double occupied = each(after.occupied - before.occupied);
  report.add(what + ": memory that no cache could give back, each", kibibytes(occupied))
      .promise("≤ " + kibibytes(promised), occupied <= promised);
  size_t keepers = 0;
  const double ofKeepers = memoryOfKeepers(host, keepers);
  report.add(what + ": of that the keeper's own (Pss)", kibibytes(each(ofKeepers)))
      .note(std::to_string(keepers) + " processes");
  const double hostAfter = residentBytes(host.process().pid());
  report.add(what + ": RSS of cay-host", megabytes(hostAfter))
      .beside(megabytes(hostBefore) + " with none", hostAfter / hostBefore);
  const auto end = Clock::now();
  host.empty();
  report.add(what + ": deleted, and off the disk, in", decimal(secondsSince(end), 2) + " s");
}

}  // namespace

void measurePoolHeld(const Settings& settings, Report& report) {
  const auto orUsual = [](size_t told, size_t usual) { return told == 0 ? usual : told; };
  measureHolding(settings, report, orUsual(settings.held, settings.quick ? 1'000 : 10'000), false);
  measureHolding(settings, report, orUsual(settings.kept, settings.quick ? 100 : 1'000), true);
}

}  // namespace cay::bench
