#include "host/wall_probe.h"

#include <sys/stat.h>

#include <set>

#include "host/pooled_access.h"
#include "isolation/bait.h"
#include "sandbox/follower.h"
#include "sys/io.h"

namespace cay::host {
namespace {

constexpr uint64_t kProbeMemory = 64ULL << 20;
constexpr uint64_t kProbePids = 16;  // few, so that their memory is far from its limit
constexpr uint64_t kProbeDisk = 16ULL << 20;
constexpr int64_t kProbeTimeoutMs = 20'000;
constexpr int kProbeAttempts = 3;  // of one that a busy machine did not let come to its end
constexpr size_t kMaxProgramBytes = 256 << 20;

// The program comes through its own standard input: nothing else is sure to be in every image.
constexpr char kScript[] =
    "cat > \"$HOME/.cay-probe\" && chmod 700 \"$HOME/.cay-probe\" && "
    "exec \"$HOME/.cay-probe\" \"$@\" < /dev/null";

sandbox::Registry::CreateRequest probeRequest(isolation::Network network) {
  sandbox::Registry::CreateRequest request;
  request.spec.network = network;
  request.spec.limits.memoryBytes = kProbeMemory;
  request.spec.limits.pids = kProbePids;
  return request;
}

net::Task<Result<std::string>> outputOf(sandbox::Sandbox& sandbox, sandbox::StartRequest request) {
  CAY_CO_ASSIGN(sandbox::Sandbox::Started started, co_await sandbox.start(std::move(request)));
  std::string output;
  while (true) {
    CAY_CO_ASSIGN(const auto piece, started.follower->next());
    if (piece) {
      output += piece->data;
    } else if (started.follower->atExit()) {
      co_return output;
    } else {
      co_await started.exec->changed.wait();
    }
  }
}

// What a command prints in a sandbox that is made for it and is gone afterwards.
net::Task<Result<std::string>> runThrowAway(sandbox::Registry& registry,
                                            sandbox::Registry::CreateRequest request,
                                            std::vector<std::string> argv, std::string input) {
  CAY_CO_ASSIGN(const auto made, co_await registry.create(std::move(request)));
  const sandbox::PooledPtr pooled = made.sandboxes.front();
  sandbox::StartRequest command;
  command.spec.argv = std::move(argv);
  command.spec.env = environmentOf(registry, pooled->record);
  command.spec.cwd = homeOf(registry, pooled->record);
  command.spec.timeoutMs = kProbeTimeoutMs;
  if (!input.empty()) command.spec.stdinMode = sandbox::Stdin::kData;
  command.spec.stdinData = std::move(input);
  auto output = co_await outputOf(pooled->sandbox, std::move(command));
  registry.retire(pooled, sandbox::Death::kKilled);
  co_await sandbox::Registry::ended(pooled);
  co_return output;
}

net::Task<Result<isolation::Walls>> tryNetwork(sandbox::Registry& registry,
                                               isolation::Network network,
                                               const isolation::Facts& facts,
                                               const std::string& program) {
  const auto request = probeRequest(network);
  const isolation::Plan plan{.id = "",
                             .mode = registry.mode(),
                             .network = network,
                             .slot = 0,
                             .firstUid = 0,
                             .root = {},
                             .limits = request.spec.limits,
                             .binds = {}};
  CAY_CO_ASSIGN(const isolation::LaidBait bait,
                isolation::LaidBait::lay(registry.folder().path(), plan));
  std::vector<std::string> argv = {"/bin/sh", "-c", kScript, "cay-probe",
                                   std::string(isolation::kProbeArgument)};
  for (std::string& argument : bait.bait().toArguments()) argv.push_back(std::move(argument));
  std::string output;
  for (int attempt = 0; attempt < kProbeAttempts && !isolation::isWhole(output); ++attempt) {
    CAY_CO_ASSIGN(output, co_await runThrowAway(registry, request, argv, program));
  }
  co_return isolation::judge(registry.mode(), output, facts);
}

// Whether a disk of its own holds more than it was made for.
net::Task<isolation::Wall> tryDisk(sandbox::Registry& registry) {
  isolation::Wall wall{.name = "disk",
                       .verdict = isolation::Verdict::kAbsent,
                       .why = "disks can be limited in full mode only",
                       .remedy = "run as root with loop devices and mkfs.ext4"};
  if (registry.mode() != isolation::Mode::kFull) co_return wall;
  auto request = probeRequest(isolation::Network::kHost);
  request.spec.limits.diskBytes = kProbeDisk;
  auto tried = co_await runThrowAway(
      registry, std::move(request),
      {"/bin/sh", "-c", "head -c \"$1\" /dev/zero > \"$HOME/full\" || echo stopped", "cay-probe",
       std::to_string(2 * kProbeDisk)},
      "");
  if (!tried) {
    wall.why = tried.error().message;
  } else if (tried->contains("stopped")) {
    wall = {.name = "disk",
            .verdict = isolation::Verdict::kHeld,
            .why = "could not write more than its disk holds",
            .remedy = ""};
  } else {
    wall.why = "could write more than its disk holds";
  }
  co_return wall;
}

}  // namespace

net::Task<Result<WallTable>> tryWalls(sandbox::Registry& registry, isolation::Facts facts,
                                      std::string program) {
  CAY_CO_ASSIGN(const std::string code, sys::readFile(program.c_str(), kMaxProgramBytes));
  WallTable table;
  table.limitedDisk = co_await tryDisk(registry);
  CAY_CO_ASSIGN(table.host, co_await tryNetwork(registry, isolation::Network::kHost, facts, code));
  if (registry.mode() == isolation::Mode::kRestricted) co_return table;
  CAY_CO_ASSIGN(table.none, co_await tryNetwork(registry, isolation::Network::kNone, facts, code));
  co_return table;
}

bool isPromised(isolation::Mode mode, std::string_view wall) {
  static const std::set<std::string_view> kAlways = {"landlock", "seccomp", "identity",
                                                     "capabilities", "privileges"};
  static const std::set<std::string_view> kNamespaces = {"user", "pid", "mount", "ipc", "uts"};
  // One user to the kernel: a signal reaches the keeper, which it cannot harm.
  if (mode == isolation::Mode::kUnprivileged && (wall == "pid" || wall == "identity")) return false;
  return kAlways.contains(wall) ||
         (mode != isolation::Mode::kRestricted && kNamespaces.contains(wall));
}

}  // namespace cay::host
