// Resident memory of the host and its keeper before and after many commands.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/text.h"
#include "client.h"
#include "host_process.h"
#include "measure.h"
#include "parallel.h"
#include "sys/io.h"

namespace cay::bench {
namespace {

double residentBytes(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/smaps_rollup";
  const std::string text = sys::readFile(path.c_str()).value_or("");
  constexpr std::string_view kRss = "\nRss:";
  const size_t at = text.find(kRss);
  if (at == std::string::npos) throw std::runtime_error("cannot read " + path);
  return std::stod(text.substr(at + kRss.size())) * 1024;
}

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
