#include "host/doctor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "host/pool.h"
#include "host/wall_table.h"
#include "net/worker_pool.h"
#include "sandbox/pool_record.h"
#include "sys/remove_tree.h"

namespace cay::host {
namespace {

constexpr char kHelp[] =
    R"(Tries what sandboxes must not be able to do, in throw-away sandboxes on this machine.

usage: cay-host doctor [options]

  --json            print JSON instead of a table
  --walls WALLS     full, unprivileged or restricted (CAY_WALLS, default auto)
  --require WALLS   names of walls, separated by commas, or `all`: exit 1 unless these hold
                    (default: those that the mode promises)
  --help            this text

Exit codes: 0 all required walls hold, 1 one does not or no sandbox can be made, 2 bad arguments.
)";

struct Options {
  bool json = false;
  bool help = false;
  std::vector<std::string> require;  // empty: what the mode promises
  std::vector<std::string> config;   // arguments for parseConfig
};

Result<Options> parse(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--json") {
      options.json = true;
    } else if (name == "--help" || name == "-h") {
      options.help = true;
    } else if ((name == "--walls" || name == "--require") && i + 1 < arguments.size()) {
      const std::string& value = arguments[++i];
      if (name == "--walls") {
        options.config = {name, value};
      } else {
        for (const std::string_view wall : split(value, ',')) options.require.emplace_back(wall);
      }
    } else {
      return fail(Code::kInvalid,
                  "unknown option " + quoted(name) + " or its value is missing (see --help)");
    }
  }
  return options;
}

bool isRequired(const Options& options, isolation::Mode mode, const std::string& wall) {
  if (options.require.empty()) return isPromised(mode, wall);
  return options.require.front() == "all" ||
         std::ranges::find(options.require, wall) != options.require.end();
}

// A folder for the sandboxes that are tried, gone afterwards.
class Folder {
 public:
  static Result<Folder> make() {
    const char* temporary = std::getenv("TMPDIR");
    Folder folder;
    folder.path_ = std::string(temporary != nullptr ? temporary : "/tmp") + "/cay-doctor-XXXXXX";
    if (::mkdtemp(folder.path_.data()) == nullptr) return failSys(folder.path_, errno);
    folder.mine_ = true;
    return folder;
  }
  Folder(Folder&& other) noexcept
      : path_(std::move(other.path_)), mine_(std::exchange(other.mine_, false)) {}
  ~Folder() {
    if (mine_) (void)sys::removeTree(AT_FDCWD, path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder& operator=(Folder&&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  Folder() = default;
  std::string path_;
  bool mine_ = false;
};

struct Findings {
  isolation::Mode mode = isolation::Mode::kFull;
  WallTable walls;
};

net::Task<Result<Findings>> examine(Pool& pool) {
  CAY_CO_TRY(co_await pool.start());
  Findings findings{.mode = pool.mode(), .walls = pool.walls()};
  co_await pool.shutdown();
  co_return findings;
}

Result<Findings> examine(Config config) {
  CAY_ASSIGN(const Folder folder, Folder::make());
  config.state = folder.path();
  net::WorkerPool workers{2};
  boost::asio::io_context io{1};
  Pool pool(io, workers, config);
  pool.examineOnly();
  Result<Findings> findings;
  boost::asio::co_spawn(io, examine(pool), [&](const std::exception_ptr&, Result<Findings> result) {
    findings = std::move(result);
    io.stop();
  });
  io.run();
  return findings;
}

void printTable(const Findings& findings, const Options& options) {
  std::printf("mode: %s\n\n%-14s %-9s %-9s %s\n",
              std::string(sandbox::modeName(findings.mode)).c_str(), "wall", "verdict", "required",
              "why");
  const auto row = [&](const isolation::Wall& wall, const std::string& name) {
    std::printf("%-14s %-9s %-9s %s\n", name.c_str(),
                std::string(isolation::verdictName(wall.verdict)).c_str(),
                isRequired(options, findings.mode, wall.name) ? "yes" : "", wall.why.c_str());
    if (wall.verdict != isolation::Verdict::kHeld && !wall.remedy.empty()) {
      std::printf("%-34s to have it: %s\n", "", wall.remedy.c_str());
    }
  };
  for (const isolation::Wall& wall : findings.walls.host) row(wall, wall.name);
  for (const isolation::Wall& wall : findings.walls.none) {
    if (wall.name == "network") row(wall, "network: none");
  }
  row(findings.walls.limitedDisk, "disk_mb");
}

void printJson(const Findings& findings, bool held) {
  json::Object out = wallTableObject(findings.walls);
  out["mode"] = sandbox::modeName(findings.mode);
  out["held"] = held;
  std::printf("%s\n", json::serialize(out).c_str());
}

bool allHeld(const Findings& findings, const Options& options) {
  return std::ranges::all_of(findings.walls.host, [&](const isolation::Wall& wall) {
    return wall.verdict == isolation::Verdict::kHeld ||
           !isRequired(options, findings.mode, wall.name);
  });
}

}  // namespace

int runDoctor(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment) {
  auto options = parse(arguments);
  if (options && options->help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  auto config = options ? parseConfig(options->config, environment)
                        : Result<Config>(std::unexpected(options.error()));
  if (!config) {
    std::fprintf(stderr, "cay-host doctor: %s\n", config.error().message.c_str());
    return 2;
  }
  setLogLevel(Level::kError);
  const auto findings = examine(std::move(*config));
  if (!findings) {
    std::fprintf(stderr, "cay-host doctor: no sandbox can be made here: %s\n",
                 findings.error().message.c_str());
    return 1;
  }
  const bool held = allHeld(*findings, *options);
  if (options->json) {
    printJson(*findings, held);
  } else {
    printTable(*findings, *options);
  }
  return held ? 0 : 1;
}

}  // namespace cay::host
