// From starting the program to its first answer, and the size of the program.
#include <filesystem>

#include "client.h"
#include "host_process.h"
#include "measure.h"
#include "samples.h"
#include "spawn.h"

namespace cay::bench {

void measureStart(const Settings& settings, Report& report) {
  progress("start to first answer");
  const std::string health = request("GET", "/health", "");
  Samples first;
  Samples bare;
  const int rounds = settings.quick ? 5 : 20;
  for (int round = 0; round < rounds; ++round) {
    bare.time([&] { (void)spawnAndRead({settings.host, "--version"}); });
    const auto start = Clock::now();
    const HostProcess host(settings.host);
    Client client(host.port());
    client.ask(health);
    first.add(secondsSince(start) * 1e3);
  }
  report.add("start to first answer, p50", millis(first.median()))
      .beside(millis(bare.median()) + " cay-host --version", first.median() / bare.median());
}

void measureSize(const Settings& settings, Report& report) {
  constexpr double kPromised = 1.5e6;
  const auto size = static_cast<double>(std::filesystem::file_size(settings.host));
  report.add("size of the executable", megabytes(size))
      .promise("≤ " + megabytes(kPromised), size <= kPromised);
}

}  // namespace cay::bench
