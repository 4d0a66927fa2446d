// Requests per second that one core serves: the server on one core, the client on another.
#include <thread>

#include "affinity.h"
#include "client.h"
#include "echo_server.h"
#include "host_process.h"
#include "measure.h"
#include "request_flood.h"
#include "samples.h"

namespace cay::bench {
namespace {

constexpr char kName[] = "/health, requests/s on one core";
constexpr int kServerCpu = 0;
constexpr int kClientCpu = 1;

}  // namespace

void measureHealth(const Settings& settings, Report& report) {
  if (std::thread::hardware_concurrency() < 2) {
    report.add(kName, "needs two cores");
    return;
  }
  progress("/health on one core");
  const HostProcess host(settings.host);
  pinProcess(host.pid(), kServerCpu);
  const std::string ask = request("GET", "/health", "");
  // The same bytes from a loop that does nothing else.
  const EchoServer bare(testing::RawClient::connect(host.port()).ask(ask), kServerCpu);
  const double seconds = settings.quick ? 0.5 : 1.5;
  const int rounds = settings.quick ? 2 : 5;

  Samples hostRate;
  Samples bareRate;
  // A thread of its own, so that no thread made later inherits its core.
  std::jthread([&] {
    pinThisThread(kClientCpu);
    for (int round = 0; round < rounds; ++round) {
      bareRate.add(answersPerSecond({.port = bare.port(), .request = ask, .seconds = seconds}));
      hostRate.add(answersPerSecond({.port = host.port(), .request = ask, .seconds = seconds}));
    }
  }).join();
  report.add(kName, decimal(hostRate.median(), 0))
      .beside(decimal(bareRate.median(), 0) + " epoll echo", hostRate.median() / bareRate.median());
}

}  // namespace cay::bench
