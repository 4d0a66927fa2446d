#include "cli/env_verb.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "cli/client_settings.h"
#include "cli/state_dir.h"
#include "hub/ca.h"
#include "hub/first_start.h"
#include "hub/run_file.h"
#include "hub/schema.h"
#include "sys/file.h"

namespace cay::cli {
namespace {

constexpr char kHelp[] =
    R"TEXT(What cay env prints holds secrets, so it is not shown on a terminal. To use it:

  eval "$(cay env)"                  in sh, bash, zsh
  cay env --shell fish | source      in fish
  cay env --shell json               for programs
  cay env --show                     to see it all the same

It sets HF_ENDPOINT, HF_TOKEN and SSL_CERT_FILE, and HTTPS_PROXY where the names of
exposed ports do not resolve on this machine.
)TEXT";

struct EnvOptions {
  std::string state;
  std::string shell = "sh";
  std::string trust = "file";
  bool show = false;
};

Shell shellOf(const EnvOptions& options) {
  if (options.shell == "fish") return Shell::kFish;
  return options.shell == "json" ? Shell::kJson : Shell::kSh;
}

bool hasProxy() {
  for (const char* name :
       {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"}) {
    if (!variable(name).empty()) return true;
  }
  return false;
}

Result<> addTrust(const hub::Paths& paths, const EnvOptions& options, ClientFacts& facts) {
  CAY_ASSIGN(hub::Ca ca, hub::Ca::open(paths.ca(), facts.domain, wallMs()));
  if (options.trust == "dir") {
    CAY_ASSIGN(facts.hashedFolder, ca.hashedFolder());
  } else {
    CAY_ASSIGN(facts.bundle, ca.bundle());
  }
  return {};
}

Result<> addTokens(const hub::Paths& paths, ClientFacts& facts) {
  CAY_ASSIGN(hub::Database database, hub::openHubDatabase(paths.database()));
  CAY_ASSIGN(facts.userToken, hub::tokenInFile(database, paths, hub::Role::kUser, wallMs()));
  if (namesResolve(facts.domain)) return {};
  CAY_ASSIGN(facts.proxyToken, hub::tokenInFile(database, paths, hub::Role::kProxy, wallMs()));
  return {};
}

Result<> printEnv(const EnvOptions& options) {
  if (::isatty(STDOUT_FILENO) != 0 && !options.show) {
    (void)std::fputs(kHelp, stdout);
    return {};
  }
  CAY_ASSIGN(const hub::Paths paths, openHub(options.state));
  const auto last = hub::readRunFile(paths);
  const hub::RunInfo info = last ? last->info : hub::RunInfo{};
  if (!last || !last->runs) {
    (void)std::fprintf(stderr, "cay env: no hub runs in %s now: start it with  cay serve\n",
                       paths.state.c_str());
  }
  ClientFacts facts;
  facts.api = info.api;
  facts.domain = info.domain;
  facts.hasProxy = hasProxy();
  // The lower case wins in most clients.
  facts.noProxy = variable("no_proxy");
  if (facts.noProxy.empty()) facts.noProxy = variable("NO_PROXY");
  CAY_TRY(addTokens(paths, facts));
  if (!info.ownCertificate) CAY_TRY(addTrust(paths, options, facts));
  (void)std::fputs(shellText(shellOf(options), clientSettings(facts)).c_str(), stdout);
  return {};
}

}  // namespace

void addEnvVerb(CLI::App& cay, Action& action) {
  const auto options = std::make_shared<EnvOptions>();
  CLI::App* const verb = cay.add_subcommand("env", "print what clients need in their environment");
  addState(*verb, options->state);
  verb->add_option("--shell", options->shell, "sh, fish or json (default sh)")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"sh", "fish", "json"}));
  verb->add_flag("--show", options->show, "also on a terminal, where secrets are not printed");
  verb->add_option("--trust", options->trust,
                   "file: SSL_CERT_FILE, a bundle (default); dir: SSL_CERT_DIR, which clients read "
                   "faster")
      ->type_name("HOW")
      ->check(CLI::IsMember({"file", "dir"}));
  verb->callback([&action, options] { action = [options] { return printEnv(*options); }; });
}

}  // namespace cay::cli
