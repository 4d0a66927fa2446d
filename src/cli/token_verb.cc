#include "cli/token_verb.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "cli/state_dir.h"
#include "cli/table.h"
#include "cli/token_text.h"
#include "hub/first_start.h"
#include "hub/private_folder.h"
#include "hub/schema.h"
#include "hub/token_admin.h"

namespace cay::cli {
namespace {

struct CreateOptions {
  std::string state;
  hub::TokenRequest request;
  int64_t livesMs = 0;  // 0: for ever
  std::string file;
  bool json = false;
};

struct OneOptions {
  std::string state;
  std::string which;
  bool json = false;
};

struct ListOptions {
  std::string state;
  bool json = false;
};

Result<hub::Database> openDatabase(const std::string& state) {
  CAY_ASSIGN(const hub::Paths paths, openHub(state));
  return hub::openHubDatabase(paths.database());
}

Result<> writeSecret(const std::string& file, const std::string& secret) {
  const std::filesystem::path path = std::filesystem::absolute(file);
  CAY_ASSIGN(hub::PrivateFolder folder, hub::PrivateFolder::open(path.parent_path().string()));
  return folder.write(path.filename().string(), secret + "\n", 0600,
                      hub::PrivateFolder::Lasts::kForever);
}

Result<> create(const CreateOptions& options) {
  CAY_ASSIGN(hub::Database database, openDatabase(options.state));
  const int64_t now = wallMs();
  hub::TokenRequest request = options.request;
  if (options.livesMs > 0) request.expiresMs = now + options.livesMs;
  CAY_ASSIGN(const hub::MadeToken made, hub::createToken(database, request, now));
  if (!options.file.empty()) {
    if (auto written = writeSecret(options.file, made.secret); !written) {
      // Nobody has seen it, so nobody should be able to use it.
      CAY_TRY(hub::revokeToken(database, made.row.id, now));
      return written;
    }
    (void)std::fprintf(stderr, "cay token: %s is in %s\n", made.row.id.c_str(),
                       options.file.c_str());
    return {};
  }
  if (options.json) {
    CAY_ASSIGN(const hub::Identities all, hub::readIdentities(database));
    json::Object object = tokenJson(all, made.row, now);
    object["token"] = made.secret;
    (void)std::puts(json::serialize(object).c_str());
    return {};
  }
  (void)std::fprintf(stderr, "cay token: %s was made; this is the only time that it is shown\n",
                     made.row.id.c_str());
  (void)std::puts(made.secret.c_str());
  return {};
}

Result<> list(const ListOptions& options) {
  CAY_ASSIGN(hub::Database database, openDatabase(options.state));
  CAY_ASSIGN(const hub::Identities all, hub::readIdentities(database));
  const int64_t now = wallMs();
  if (options.json) {
    json::Array array;
    for (const hub::TokenRow& row : all.tokens) array.push_back(tokenJson(all, row, now));
    (void)std::puts(json::serialize(array).c_str());
    return {};
  }
  Table table({"ID", "NAME", "ROLE", "USER", "NAMESPACES", "ENDS IN", "STATE", "EXPIRES", "USED"});
  for (const hub::TokenRow& row : all.tokens) table.add(tokenCells(all, row, now));
  (void)std::fputs(table.text().c_str(), stdout);
  return {};
}

Result<> show(const OneOptions& options) {
  CAY_ASSIGN(hub::Database database, openDatabase(options.state));
  CAY_ASSIGN(const hub::Identities all, hub::readIdentities(database));
  CAY_ASSIGN(const hub::TokenRow row, hub::findToken(all, options.which));
  const json::Object object = tokenJson(all, row, wallMs());
  if (options.json) {
    (void)std::puts(json::serialize(object).c_str());
    return {};
  }
  (void)std::fputs(fieldLines(object).c_str(), stdout);
  return {};
}

Result<> revoke(const OneOptions& options) {
  CAY_ASSIGN(hub::Database database, openDatabase(options.state));
  CAY_ASSIGN(const hub::Identities all, hub::readIdentities(database));
  CAY_ASSIGN(const hub::TokenRow row, hub::findToken(all, options.which));
  CAY_TRY(hub::revokeToken(database, row.id, wallMs()));
  (void)std::fprintf(stderr, "cay token: %s %s\n", row.id.c_str(),
                     row.revokedMs == 0 ? "is revoked" : "was revoked before");
  return {};
}

Result<hub::Role> readRole(const std::string& text) {
  const auto role = hub::roleOf(text);
  if (!role) return fail(Code::kInvalid, "admin, user or proxy");
  return *role;
}

Result<int64_t> readLife(const std::string& text) {
  const auto time = parseDurationMs(text);
  if (!time || *time == 0) return fail(Code::kInvalid, "a time such as 30d, 12h or 90m");
  return *time;
}

void addCreate(CLI::App& token, Action& action) {
  const auto options = std::make_shared<CreateOptions>();
  CLI::App* const verb = token.add_subcommand("create", "make a token and print it, once");
  addState(*verb, options->state);
  verb->add_option("NAME", options->request.name, "what it is called, for people")->required();
  addOption(*verb, "--role", options->request.role, readRole,
            "admin: every namespace; user: its own and those that it is given (default); proxy: "
            "the way through HTTPS_PROXY and nothing else")
      ->type_name("ROLE");
  verb->add_option("--user", options->request.user,
                   "whose it is; somebody new gets a namespace of that name (default: who started "
                   "the hub first)")
      ->type_name("NAME");
  verb->add_option("--namespace", options->request.namespaces,
                   "further namespaces that it may use; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  addOption(*verb, "--expires", options->livesMs, readLife,
            "how long it is good (default: for ever)")
      ->type_name("TIME");
  CLI::Option* const file =
      verb->add_option("--file", options->file, "write it into this file, for its owner only")
          ->type_name("FILE");
  verb->add_flag("--json", options->json, "print JSON")->excludes(file);
  verb->callback([&action, options] { action = [options] { return create(*options); }; });
}

using OneWork = Result<> (*)(const OneOptions&);
CLI::App* addOne(CLI::App& token, Action& action, const char* name, const char* help,
                 OneWork work) {
  const auto options = std::make_shared<OneOptions>();
  CLI::App* const verb = token.add_subcommand(name, help);
  addState(*verb, options->state);
  verb->add_option("TOKEN", options->which, "its id, or its name if no other has it")->required();
  verb->callback([&action, options, work] { action = [options, work] { return work(*options); }; });
  if (work == show) verb->add_flag("--json", options->json, "print JSON");
  return verb;
}

}  // namespace

void addTokenVerb(CLI::App& cay, Action& action) {
  CLI::App* const token = cay.add_subcommand("token", "say who may use the hub");
  token->require_subcommand(0, 1);
  addCreate(*token, action);
  const auto options = std::make_shared<ListOptions>();
  CLI::App* const verb = token->add_subcommand("list", "list the tokens that there are and were");
  addState(*verb, options->state);
  verb->add_flag("--json", options->json, "print JSON");
  verb->callback([&action, options] { action = [options] { return list(*options); }; });
  addOne(*token, action, "revoke", "end a token for good", revoke);
  addOne(*token, action, "show", "tell all about a token but the token itself", show);
}

}  // namespace cay::cli
