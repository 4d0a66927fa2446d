// How long one command takes from the request to the end of the answer, beside other ways to run
// the same program. All take turns, so that a machine that slows down slows all of them.
#include <unistd.h>

#include <stdexcept>

#include "client.h"
#include "echo_server.h"
#include "host_process.h"
#include "measure.h"
#include "samples.h"
#include "spawn.h"

namespace cay::bench {
namespace {

constexpr char kBubblewrap[] = "/usr/bin/bwrap";
constexpr char kTrue[] = "/bin/true";
constexpr char kEchoAnswer[] = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"status\":\"ok\"}\n";

void expectIn(std::string_view answer, std::string_view part) {
  if (!answer.contains(part))
    throw std::runtime_error("an unexpected answer: " + std::string(answer));
}

void runTrue(Client& client, const std::string& request) {
  expectIn(client.ask(request), "\"exit_code\":0");
}

void runEcho(Client& client, const std::string& request) {
  const std::string_view answer = client.ask(request);
  expectIn(answer, "\"data\":\"hello\\n\"");
  expectIn(answer, "\"exit_code\":0");
}

void spawnEcho() {
  expectIn(spawnAndRead({"/bin/echo", "hello"}), "hello\n");
}

// The promise: half of all commands take no longer than this.
double promised(const Samples& bare) {
  return 1.25 * bare.median() + 0.15;
}

void addExec(Report& report, const std::string& what, const Samples& exec, const Samples& bare) {
  report.add("exec " + what + ", p50", millis(exec.median()))
      .beside(millis(bare.median()) + " posix_spawn", exec.median() / bare.median())
      .promise("≤ " + millis(promised(bare)), exec.median() <= promised(bare));
  const double exec99 = exec.percentile(99);
  const double bare99 = bare.percentile(99);
  report.add("exec " + what + ", p99", millis(exec99))
      .beside(millis(bare99) + " posix_spawn", exec99 / bare99);
}

void addOther(Report& report, const std::string& what, const Samples& samples,
              const Samples& bare) {
  const std::string both = millis(samples.median()) + " (" + millis(samples.percentile(99)) + ")";
  report.add(what + ", p50 (p99)", both)
      .beside(millis(bare.median()) + " posix_spawn", samples.median() / bare.median());
}

}  // namespace

void measureRoundTrips(const Settings& settings, Report& report) {
  progress("round trips of single commands");
  const HostProcess host(settings.host);
  host.fillRecords();
  EchoServer echoServer(kEchoAnswer);
  Client client(host.port());
  Client echoClient(echoServer.port());
  const std::string trueRequest = host.execRequest(R"({"cmd":["/bin/true"]})");
  const std::string echoRequest = host.execRequest(R"({"cmd":["/bin/echo","hello"]})");
  const std::string healthRequest = request("GET", "/", "");
  const Command bubblewrap = {kBubblewrap, "--unshare-all", "--share-net", "--ro-bind", "/", "/",
                              kTrue};
  const bool hasBubblewrap = ::access(kBubblewrap, X_OK) == 0;

  Samples execTrue;
  Samples execEcho;
  Samples bareTrue;
  Samples bareEcho;
  Samples walled;
  Samples http;
  const int rounds = settings.quick ? 3 : 15;
  constexpr int kPerRound = 200;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kPerRound; ++i) bareTrue.time([] { spawnAndWait({kTrue}); });
    for (int i = 0; i < kPerRound; ++i) execTrue.time([&] { runTrue(client, trueRequest); });
    for (int i = 0; i < kPerRound; ++i) bareEcho.time(spawnEcho);
    for (int i = 0; i < kPerRound; ++i) execEcho.time([&] { runEcho(client, echoRequest); });
    for (int i = 0; i < kPerRound; ++i) http.time([&] { echoClient.ask(healthRequest); });
    for (int i = 0; hasBubblewrap && i < kPerRound / 4; ++i) {
      walled.time([&] { spawnAndWait(bubblewrap); });
    }
  }

  addExec(report, "/bin/true", execTrue, bareTrue);
  addExec(report, "/bin/echo hello", execEcho, bareEcho);
  if (hasBubblewrap) {
    addOther(report, "bubblewrap /bin/true", walled, bareTrue);
  } else {
    report.add("bubblewrap /bin/true", "not installed");
  }
  addOther(report, "raw HTTP echo", http, bareTrue);
}

}  // namespace cay::bench
