// How many commands run to their end each second, for clients that each wait for one before they
// ask for the next.
#include "client.h"
#include "host_process.h"
#include "measure.h"
#include "parallel.h"
#include "samples.h"
#include "spawn.h"

namespace cay::bench {
namespace {

// Repeats what `makeWork` gives in each of `threads` threads for about `seconds`.
template <typename MakeWork>
double perSecond(size_t threads, double seconds, const MakeWork& makeWork) {
  const auto start = Clock::now();
  const size_t done = inParallel(threads, [&] {
    auto work = makeWork();
    size_t count = 0;
    while (secondsSince(start) < seconds) {
      work();
      ++count;
    }
    return count;
  });
  return static_cast<double>(done) / secondsSince(start);
}

}  // namespace

void measureCommandsPerSecond(const Settings& settings, Report& report) {
  const HostProcess host(settings.host);
  host.fillRecords();
  const std::string request = host.execRequest(R"({"cmd":["/bin/true"]})");
  const double seconds = settings.quick ? 0.5 : 2;
  const int rounds = settings.quick ? 1 : 3;
  for (const size_t clients : {1, 16, 64}) {
    const std::string who = std::to_string(clients) + (clients == 1 ? " client" : " clients");
    progress("commands per second, " + who);
    Samples exec;
    Samples bare;
    for (int round = 0; round < rounds; ++round) {
      bare.add(perSecond(clients, seconds, [] { return [] { spawnAndWait({"/bin/true"}); }; }));
      exec.add(perSecond(clients, seconds, [&] {
        return [&, client = Client(host.port())]() mutable { client.ask(request); };
      }));
    }
    report.add("commands/s, " + who, decimal(exec.median(), 0))
        .beside(decimal(bare.median(), 0) + " posix_spawn, as many threads",
                exec.median() / bare.median());
  }
}

}  // namespace cay::bench
