// Resident memory of the host and its keeper before and after many commands.
#include <chrono>
#include <thread>

#include "client.h"
#include "host_process.h"
#include "machine.h"
#include "measure.h"
#include "parallel.h"

namespace cay::bench {
namespace {

void addFigure(Report& report, const std::string& who, const std::string& load, double idle,
               double after) {
  constexpr double kPromised = 2e6;
  report.add("RSS of the " + who + " after " + load, megabytes(after))
      .beside(megabytes(idle) + " idle", after / idle)
      .promise("≤ idle + " + megabytes(kPromised), after - idle <= kPromised);
}

}  // namespace

void measureMemory(const Settings& settings, Report& report) {
  constexpr size_t kClients = 16;
  const size_t each = (settings.quick ? 2'000 : 10'000) / kClients;
  const std::string load = std::to_string(each * kClients) + " commands";
  progress("memory before and after " + load);
  const HostProcess host(settings.host);
  const std::string request = host.execRequest(R"({"cmd":["/bin/echo","hello"]})");
  Client(host.port()).ask(request);  // starts the keeper
  const double hostIdle = residentBytes(host.pid());
  const double keeperIdle = residentBytes(host.keeper());
  inParallel(kClients, [&] {
    Client client(host.port());
    for (size_t i = 0; i < each; ++i) client.ask(request);
    return each;
  });
  // Connections that were just closed are still being taken down.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  addFigure(report, "host", load, hostIdle, residentBytes(host.pid()));
  addFigure(report, "keeper", load, keeperIdle, residentBytes(host.keeper()));
}

}  // namespace cay::bench
