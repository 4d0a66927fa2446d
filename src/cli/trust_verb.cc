#include "cli/trust_verb.h"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/sha256.h"
#include "cli/state_dir.h"
#include "engine/tool.h"
#include "files/temp_file.h"
#include "hub/ca.h"
#include "hub/run_file.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::cli {
namespace {

constexpr char kStore[] = "/usr/local/share/ca-certificates";
constexpr char kUpdate[] = "update-ca-certificates";
constexpr size_t kMostPemBytes = size_t{1} << 20;
constexpr size_t kNameDigits = 12;

// By the state folder, so that another CA of the same hub takes its place, and so that it can be
// removed when the folder is gone.
std::string fileName(const hub::Paths& paths) {
  return "cay-" + sha256Hex(paths.state).substr(0, kNameDigits) + ".crt";
}

Result<> requireRoot() {
  if (::geteuid() == 0) return {};
  return fail(Code::kDenied,
              "only root can change what the whole system trusts; as yourself use  "
              "eval \"$(cay env)\"");
}

Result<> updateStore() {
  auto done = engine::runTool(kUpdate, {});
  if (done) return {};
  if (done.error().code != Code::kNotFound) return std::unexpected(std::move(done).error());
  return fail(Code::kNotFound, std::string(kUpdate) +
                                   " is not here (package ca-certificates); on other systems add "
                                   "ca/ca.pem of the state folder to the store by their own means");
}

Result<Fd> openStore() {
  auto store = sys::openAt(AT_FDCWD, kStore, O_RDONLY | O_DIRECTORY);
  if (store || store.error().sys != ENOENT) return store;
  CAY_TRY(sys::makeDirectoryAt(AT_FDCWD, kStore, 0755));
  return sys::openAt(AT_FDCWD, kStore, O_RDONLY | O_DIRECTORY);
}

Result<> install(const std::string& state) {
  CAY_TRY(requireRoot());
  CAY_ASSIGN(const hub::Paths paths, openHub(state));
  const auto last = hub::readRunFile(paths);
  const std::string domain = last ? last->info.domain : hub::kDomain;
  CAY_ASSIGN(const hub::Ca ca, hub::Ca::open(paths.ca(), domain, wallMs()));
  CAY_ASSIGN(const std::string pem, sys::readFile(ca.caFile().c_str(), kMostPemBytes));
  CAY_ASSIGN(const Fd store, openStore());
  const std::string name = fileName(paths);
  const auto present = sys::readFileAt(store.get(), name.c_str(), kMostPemBytes);
  const bool isThere = present && *present == pem;
  if (!isThere) {
    CAY_ASSIGN(files::TempFile file, files::TempFile::create(store.get(), 0644));
    CAY_TRY(sys::chmodFd(file.fd(), 0644));
    CAY_TRY(sys::writeAll(file.fd(), pem));
    CAY_TRY(file.publish(name));
  }
  // Also when it is there: an earlier try may have been broken off before this.
  CAY_TRY(updateStore());
  std::printf("%s %s/%s: programs that use the system's store trust names below %s of this hub\n",
              isThere ? "already there:" : "installed", kStore, name.c_str(), domain.c_str());
  return {};
}

Result<> remove(const std::string& state) {
  CAY_TRY(requireRoot());
  CAY_ASSIGN(const hub::Paths paths, statePaths(state, true, variable));
  const std::string file = std::string(kStore) + "/" + fileName(paths);
  const auto removed = sys::unlinkAt(AT_FDCWD, file.c_str());
  if (!removed && removed.error().sys != ENOENT) return std::unexpected(removed.error());
  CAY_TRY(updateStore());
  std::printf("%s %s\n", removed ? "removed" : "not there:", file.c_str());
  return {};
}

using Work = Result<> (*)(const std::string& state);
void addOne(CLI::App& trust, Action& action, const char* name, const char* help, Work work) {
  const auto state = std::make_shared<std::string>();
  CLI::App* const verb = trust.add_subcommand(name, help);
  addState(*verb, *state);
  verb->callback([&action, state, work] { action = [state, work] { return work(*state); }; });
}

}  // namespace

void addTrustVerb(CLI::App& cay, Action& action) {
  CLI::App* const trust =
      cay.add_subcommand("trust", "let the whole system trust the hub's CA, or no longer");
  trust->require_subcommand(0, 1);
  addOne(*trust, action, "install", "put the CA into the system's store (root)", install);
  addOne(*trust, action, "remove", "take it out again (root)", remove);
}

}  // namespace cay::cli
