#include "cli/serve_verb.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/log.h"
#include "cli/state_dir.h"
#include "host/config.h"
#include "hub/serve.h"
#include "sys/file.h"

namespace cay::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostDays = 36'500;
constexpr uint64_t kMostJobs = 100'000'000;

bool isAddress(int family, const std::string& text) {
  in6_addr parsed{};
  return ::inet_pton(family, text.c_str(), &parsed) == 1;
}

Result<std::string> readAddress(const std::string& text) {
  if (isAddress(AF_INET, text) || isAddress(AF_INET6, text)) return text;
  return fail(Code::kInvalid, "an IP address");
}

Result<std::string> readResolver(const std::string& text) {
  if (isAddress(AF_INET, text)) return text;
  return fail(Code::kInvalid, "an IPv4 address");
}

Result<std::string> readUpstream(const std::string& text) {
  const bool hasScheme = text.starts_with("https://") || text.starts_with("http://");
  const size_t host = text.find("://") + 3;
  const bool isPlain = std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7F; });
  // Only where it is: routes and queries come from clients, and credentials from a file.
  if (!hasScheme || !isPlain || text.size() == host ||
      text.find_first_of("/?#@", host) != std::string::npos) {
    return fail(Code::kInvalid, "a URL such as https://huggingface.co");
  }
  return text;
}

Result<engine::Outbound> readNetwork(const std::string& text) {
  using engine::Outbound;
  if (text == "auto") return Outbound::kAuto;
  if (text == "kernel") return Outbound::kKernel;
  if (text == "slirp") return Outbound::kSlirp;
  if (text == "none") return Outbound::kNone;
  return fail(Code::kInvalid, "auto, kernel, slirp or none");
}

// Options that take several values collect them.
template <typename Read>
CLI::Option* addEach(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                     Read read, const std::string& help) {
  return verb
      .add_option_function<std::vector<std::string>>(
          name,
          [&values, read, name](const std::vector<std::string>& texts) {
            values.clear();
            for (const std::string& text : texts) {
              auto got = read(text);
              if (!got) {
                throw CLI::ValidationError(name,
                                           cay::quoted(text) + " is not " + got.error().message);
              }
              values.push_back(*std::move(got));
            }
          },
          help)
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
}

void addEdgeOptions(CLI::App& verb, hub::ServeOptions& options) {
  addOption(verb, "--port", options.port, readPort,
            "port of the API on 127.0.0.1; 0 takes any free one (default 7340)")
      ->type_name("PORT");
  addOption(verb, "--tls-port", options.tlsPort, readPort,
            "port of the exposed ports of jobs; 0 takes any free one (default 7343)")
      ->type_name("PORT");
  addEach(verb, "--listen", options.listen, readAddress,
          "further IP addresses for the TLS port, may be repeated; it always listens on 127.0.0.1 "
          "and ::1");
  verb.add_option("--domain", options.domain,
                  "exposed ports are <job>--<port>.<domain> (default cay.localhost)")
      ->type_name("NAME");
  verb.add_option("--tls-cert", options.tlsCert,
                  "file of a certificate for the domain and *.domain (default: by a private CA)")
      ->type_name("FILE");
  verb.add_option("--tls-key", options.tlsKey, "file of its key")->type_name("FILE");
  addOption(verb, "--upstream", options.upstream, readUpstream,
            "the Hub that has what is not served here (default https://huggingface.co)")
      ->type_name("URL");
  verb.add_option("--upstream-token-file", options.upstreamTokenFile,
                  "file of the token for it (default: none is sent)")
      ->type_name("FILE");
  verb.add_flag_callback(
      "--no-tunnel", [&options] { options.tunnel = false; }, "no CONNECT to anybody else");
}

void addJobOptions(CLI::App& verb, hub::ServeOptions& options) {
  const auto days = [](const std::string& text) -> Result<uint32_t> {
    CAY_ASSIGN(const uint64_t number, readNumber(text, 1, kMostDays));
    return static_cast<uint32_t>(number);
  };
  const auto jobs = [](const std::string& text) { return readNumber(text, 1, kMostJobs); };
  addOption(verb, "--network", options.network, readNetwork,
            "how jobs reach others: kernel, slirp, none, or auto, the first that works (default)")
      ->type_name("HOW");
  addEach(verb, "--dns", options.dns, readResolver,
          "who jobs ask for names, may be repeated (default: who this machine asks)");
  verb.add_option("--flavors", options.flavors,
                  "file that says what jobs can ask for (default: flavors.json of the state)")
      ->type_name("FILE");
  verb.add_option("--cay-host", options.cayHost,
                  "the program cay-host (default: beside cay, or in PATH)")
      ->type_name("FILE");
  addOption(verb, "--keep-logs-days", options.keepLogsDays, days,
            "ended jobs and their logs are kept so long (default 7)")
      ->type_name("N");
  addOption(verb, "--keep-jobs", options.keepJobs, jobs,
            "and at most so many of them (default 10000)")
      ->type_name("N");
  verb.add_flag("--end-jobs", options.endJobs,
                "end all jobs when told to stop; else they go on until the next start");
  verb.add_option("--log-level", options.logLevel, "debug, info, warn or error (default info)")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}));
}

bool isBelowLocalhost(const std::string& domain) {
  return domain == "localhost" || domain.ends_with(".localhost");
}

Result<> requireFile(const char* option, const std::string& file) {
  if (file.empty()) return {};
  auto opened = sys::openAt(AT_FDCWD, file.c_str(), O_RDONLY);
  if (opened) return {};
  return fail(Code::kInvalid, std::string(option) + ": " + opened.error().message);
}

void listenOnLoopback(std::vector<std::string>& listen) {
  const auto has = [&](std::string_view address) {
    return std::ranges::find(listen, address) != listen.end();
  };
  if (!has("0.0.0.0") && !has("127.0.0.1")) listen.emplace_back("127.0.0.1");
  if (!has("::") && !has("::1")) listen.emplace_back("::1");
}

bool isProgram(const std::string& path) {
  return fs::is_regular_file(path) && ::access(path.c_str(), X_OK) == 0;
}

Result<> serve(const std::string& state, hub::ServeOptions& options, int& exitCode) {
  CAY_TRY(completeServeOptions(options));
  if (options.cayHost.empty()) {
    std::error_code ignored;
    CAY_ASSIGN(options.cayHost,
               findCayHost(fs::read_symlink("/proc/self/exe", ignored).string(), variable("PATH")));
  }
  CAY_ASSIGN(const hub::Paths paths, makeState(state));
  options.state = paths.state;
  (void)setLogLevel(options.logLevel);
  exitCode = hub::serve(options);
  return {};
}

}  // namespace

void addServeOptions(CLI::App& verb, hub::ServeOptions& options) {
  addEdgeOptions(verb, options);
  addJobOptions(verb, options);
}

Result<> completeServeOptions(hub::ServeOptions& options) {
  if (options.tlsCert.empty() != options.tlsKey.empty()) {
    return fail(Code::kInvalid, "--tls-cert and --tls-key go together");
  }
  if (options.port != 0 && options.port == options.tlsPort) {
    return fail(Code::kInvalid, "--port and --tls-port cannot be the same");
  }
  for (const std::string& address : options.listen) {
    if (host::isLoopbackAddress(address) || !options.tlsCert.empty()) continue;
    if (!isBelowLocalhost(options.domain)) continue;
    return fail(Code::kInvalid,
                "--listen: others than this machine reach the hub by TLS only, and " +
                    cay::quoted(options.domain) +
                    " is a name that only this machine knows: give it a name that " +
                    "they know (--domain), and a certificate that they trust " +
                    "(--tls-cert, --tls-key)");
  }
  CAY_TRY(requireFile("--tls-cert", options.tlsCert));
  CAY_TRY(requireFile("--tls-key", options.tlsKey));
  CAY_TRY(requireFile("--upstream-token-file", options.upstreamTokenFile));
  CAY_TRY(requireFile("--flavors", options.flavors));
  if (!options.cayHost.empty() && !isProgram(options.cayHost)) {
    return fail(Code::kInvalid,
                "--cay-host: " + cay::quoted(options.cayHost) + " is not a program");
  }
  listenOnLoopback(options.listen);
  return {};
}

Result<std::string> findCayHost(const std::string& program, const std::string& path) {
  std::vector<std::string> folders{fs::path(program).parent_path().string()};
  for (const std::string_view folder : split(path, ':')) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    // A folder that is not absolute depends on where we are: others may have put something there.
    if (!folder.starts_with('/')) continue;
    std::string found = folder + "/cay-host";
    if (isProgram(found)) return found;
  }
  return fail(Code::kNotFound,
              "cay-host is neither beside cay nor in PATH: say where it is (--cay-host)");
}

void addServeVerb(CLI::App& cay, Action& action, int& exitCode) {
  const auto options = std::make_shared<hub::ServeOptions>();
  const auto state = std::make_shared<std::string>();
  CLI::App* const verb = cay.add_subcommand("serve", "run the hub until SIGTERM or SIGINT");
  addState(*verb, *state);
  addServeOptions(*verb, *options);
  verb->callback([&action, &exitCode, options, state] {
    action = [&exitCode, options, state] { return serve(*state, *options, exitCode); };
  });
}

}  // namespace cay::cli
