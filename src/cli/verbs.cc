#include "cli/verbs.h"

#include <algorithm>
#include <cstdio>

#include "cli/arguments.h"
#include "cli/env_verb.h"
#include "cli/image_verb.h"
#include "cli/serve_verb.h"
#include "cli/token_verb.h"
#include "cli/trust_verb.h"

namespace cay::cli {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

int exitCodeOf(Code code) {
  switch (code) {
    case Code::kInvalid:
      return kExitUsage;
    case Code::kNotFound:
      return 3;
    case Code::kDenied:
      return 4;
    case Code::kUnreachable:
      return 5;
    case Code::kConflict:
      return 6;
    default:
      return kExitFailure;
  }
}

// "cay token create"
std::string nameOf(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + nameOf(*chosen.back());
}

const CLI::App& lastOf(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : lastOf(*chosen.back());
}

int complain(const CLI::App& app, std::string_view message, int code) {
  std::string line(message);
  std::ranges::replace(line, '\n', ' ');
  (void)std::fprintf(stderr, "%s: %s\n", nameOf(app).c_str(), line.c_str());
  return code;
}

int complainOfUse(const CLI::App& app, const std::string& message) {
  return complain(app, message + " (see " + nameOf(app) + " --help)", kExitUsage);
}

// Where a verb was expected, or something else that nobody knows.
std::string unknown(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(true);
  std::string what;
  for (const std::string& argument : rest) {
    what.append(what.empty() ? "" : " ").append(cay::quoted(argument));
  }
  const bool isVerb =
      !rest.empty() && !rest.front().starts_with('-') && !lastOf(app).get_subcommands({}).empty();
  return (isVerb ? "unknown verb " : "unknown argument ") + what;
}

std::string verbIsMissing(const CLI::App& app) {
  std::string names;
  for (const CLI::App* verb : lastOf(app).get_subcommands({})) {
    names.append(names.empty() ? "" : ", ").append(verb->get_name());
  }
  return "say what to do: one of " + names;
}

// What was printed must have arrived: a token is shown once.
bool flushed() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

}  // namespace

int runCay(std::vector<std::string> arguments) {
  CLI::App app("cay: your own Jobs cloud, on this machine", "cay");
  app.set_help_flag("--help,-h", "this text");
  app.set_version_flag("--version", "cay " CAY_VERSION, "the version");
  app.require_subcommand(0, 1);
  Action action;
  int exitCode = 0;
  addServeVerb(app, action, exitCode);
  addEnvVerb(app, action);
  addTokenVerb(app, action);
  addImageVerb(app, action);
  addTrustVerb(app, action);
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    (void)std::fputs(app.help().c_str(), stdout);
    return flushed() ? 0 : kExitFailure;
  } catch (const CLI::CallForVersion& version) {
    (void)std::puts(version.what());
    return flushed() ? 0 : kExitFailure;
  } catch (const CLI::ExtrasError&) {
    return complainOfUse(app, unknown(app));
  } catch (const CLI::ParseError& error) {
    return complainOfUse(app, error.what());
  }
  if (!action) return complainOfUse(app, verbIsMissing(app));
  const auto done = action();
  if (!done) {
    (void)std::fflush(stdout);
    return complain(app, done.error().message, exitCodeOf(done.error().code));
  }
  if (!flushed()) return complain(app, "what was to be printed could not be written", kExitFailure);
  return exitCode;
}

}  // namespace cay::cli
