// Makes and deletes very many sandboxes with commands in them, and counts what the machine has more
// of afterwards. Prints one JSON object; whether the counts are right is for the caller to say.
//
//   pool_soak [--host PATH] [--walls full|restricted] [--count N] [--clients N] [--kills N]
//
// --kills: so many times in between, the host is killed with SIGKILL and started again.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/json.h"
#include "base/text.h"
#include "machine.h"
#include "parallel.h"
#include "pool_client.h"
#include "pool_host.h"
#include "samples.h"
#include "traces.h"

namespace {

namespace json = cay::json;
using cay::bench::Box;
using cay::bench::Clock;
using cay::bench::PoolClient;
using cay::bench::PoolHost;
using cay::bench::secondsSince;
using cay::bench::Traces;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr char kUsage[] =
    "usage: pool_soak [--host PATH] [--walls full|restricted] [--count N] [--clients N] "
    "[--kills N]\n";

struct Options {
  std::string host;
  std::string walls = "full";
  size_t count = 50'000;
  size_t clients = 16;
  size_t kills = 0;
};

bool readArguments(const std::vector<std::string>& arguments, Options& options) {
  const std::map<std::string, std::string*> texts = {{"--host", &options.host},
                                                     {"--walls", &options.walls}};
  const std::map<std::string, size_t*> numbers = {
      {"--count", &options.count}, {"--clients", &options.clients}, {"--kills", &options.kills}};
  if (arguments.size() % 2 != 0) return false;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& value = arguments[i + 1];
    if (const auto text = texts.find(arguments[i]); text != texts.end()) {
      *text->second = value;
    } else if (const auto number = numbers.find(arguments[i]); number != numbers.end()) {
      const auto parsed = cay::parseUint(value);
      if (!parsed) return false;
      *number->second = *parsed;
    } else {
      return false;
    }
  }
  return true;
}

// Whose ids a sandbox has: its slot, seen from inside.
std::string ownerOf(PoolClient& client, const Box& box) {
  return client.read(box, R"({"cmd":"cat /proc/self/uid_map && id -u","shell":true})");
}

// One sandbox's life. Most are short; some have limits, a network, a disk, files or processes that
// nobody ends.
void live(PoolClient& client, std::minstd_rand& random, bool restricted) {
  const auto oneIn = [&](unsigned count) { return random() % count == 0; };
  std::string_view options = "{}";
  if (oneIn(8)) options = R"({"memory_mb":64,"pids":64,"cpus":1})";
  if (!restricted && oneIn(8)) options = R"({"network":"none"})";
  if (!restricted && oneIn(64)) options = R"({"disk_mb":64})";
  const Box box = client.create(options);
  if (!oneIn(32)) client.exec(box);
  if (oneIn(4)) {
    client.exec(box, R"({"cmd":"mkdir -p $HOME/a/b && seq 1000 > $HOME/a/b/c","shell":true})");
  }
  if (oneIn(16)) {
    client.exec(box, R"({"cmd":"sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 &",)"
                     R"("shell":true})");
  }
  if (oneIn(8)) client.write(box, "/file", 100'000);
  client.remove(box);
}

class Soak {
 public:
  Soak(PoolHost& host, const Options& options) : host_(host), options_(options) {}

  void run(size_t count) {
    const size_t end = begun_ + count;
    cay::bench::inParallel(options_.clients, [&] {
      work(end);
      return size_t{0};
    });
  }

  // Kills the host at even distances, and tells how far it is every few seconds.
  void watch(const std::stop_token& stop) {
    constexpr double kEvery = 5;
    size_t kills = 0;
    const auto start = Clock::now();
    auto told = start;
    const size_t before = done_;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (kills < options_.kills &&
          done_ - before >= (kills + 1) * options_.count / (options_.kills + 1)) {
        host_.process().killAndRestart();
        ++generation_;
        ++kills;
      }
      if (secondsSince(told) < kEvery) continue;
      told = Clock::now();
      const auto running = cay::bench::processesOf(host_.program()).size();
      (void)std::fprintf(
          stderr, "%zu done in %.0f s, %zu lost; host %.1f MB, %zu processes, %zu in trash\n",
          done_ - before, secondsSince(start), lost_.load(),
          cay::bench::residentBytes(host_.process().pid()) / 1e6, running, host_.waiting());
    }
  }

  [[nodiscard]] size_t lost() const { return lost_; }

 private:
  void work(size_t end) {
    std::minstd_rand random(static_cast<unsigned>(++workers_));
    size_t generation = generation_;
    auto client = std::make_unique<PoolClient>(host_);
    while (begun_++ < end) {
      try {
        live(*client, random, options_.walls == "restricted");
      } catch (const std::exception&) {
        // The host was killed in the midst of it. What became of the sandbox is not known here.
        if (!awaitRestart(generation)) throw;
        ++lost_;
        client = std::make_unique<PoolClient>(host_);
      }
      ++done_;
    }
  }

  // False if there is none.
  bool awaitRestart(size_t& generation) const {
    constexpr double kPatience = 30;
    const auto start = Clock::now();
    while (generation_ == generation) {
      if (options_.kills == 0 || secondsSince(start) > kPatience) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    generation = generation_;
    return true;
  }

  PoolHost& host_;
  const Options& options_;
  std::atomic<size_t> begun_ = 0;
  std::atomic<size_t> done_ = 0;
  std::atomic<size_t> lost_ = 0;
  std::atomic<size_t> workers_ = 0;
  std::atomic<size_t> generation_ = 0;
};

// Leaves the pool empty and gives the ids that the next sandbox would have.
std::string nextOwner(const PoolHost& host) {
  host.rest();
  PoolClient client(host);
  const std::string owner = ownerOf(client, client.create());
  host.rest();
  return owner;
}

json::Object toJson(const Traces& traces) {
  json::Object object;
  for (const auto& [name, value] : traces) object[name] = value;
  return object;
}

// The kernel lets go of some things a moment after their end.
Traces machineAtRest(const Traces& before) {
  constexpr double kPatience = 60;
  const auto start = Clock::now();
  for (;;) {
    Traces now = cay::bench::tracesOnMachine();
    const bool atRest = std::ranges::all_of(
        now, [&](const auto& trace) { return trace.second <= before.at(trace.first); });
    if (atRest || secondsSince(start) > kPatience) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

json::Object soak(const Options& options) {
  json::Object result;
  const Traces machineBefore = cay::bench::tracesOnMachine();
  PoolHost host(options.host, options.walls);
  Soak soak(host, options);
  soak.run(options.count / 50);
  result["owner_before"] = nextOwner(host);
  result["host_before"] = toJson(cay::bench::tracesOf(host));

  const auto start = Clock::now();
  {
    const std::jthread watcher([&](const std::stop_token& stop) { soak.watch(stop); });
    soak.run(options.count);
  }
  result["seconds"] = secondsSince(start);
  result["lost"] = soak.lost();
  result["left"] = PoolClient(host).list().size();
  result["owner_after"] = nextOwner(host);
  // Connections that were just closed are still being taken down.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  result["host_after"] = toJson(cay::bench::tracesOf(host));
  host.process().stop();
  result["host_ended"] = toJson(cay::bench::tracesOf(host));
  result["machine_before"] = toJson(machineBefore);
  result["machine_after"] = toJson(machineAtRest(machineBefore));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    options.host = std::filesystem::read_symlink("/proc/self/exe").replace_filename("cay-host");
    if (!readArguments({argv + 1, argv + argc}, options)) {
      (void)std::fputs(kUsage, stderr);
      return kExitUsage;
    }
    std::puts(json::serialize(soak(options)).c_str());
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "pool_soak: %s\n", error.what());
    return kExitFailure;
  }
  return 0;
}
