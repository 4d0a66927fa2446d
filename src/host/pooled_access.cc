#include "host/pooled_access.h"

#include <algorithm>

#include "host/inside.h"
#include "sys/file.h"

namespace cay::host {
namespace {

using isolation::Mode;
using sandbox::PathRule;
using sandbox::PoolRecord;
using sandbox::Registry;

constexpr std::string_view kOurs[] = {"HOME", "USER", "LOGNAME", "TMPDIR"};
constexpr char kHome[] = "/root";  // where there are roots
constexpr char kSystemPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

}  // namespace

std::string homeOf(const Registry& registry, const PoolRecord& record) {
  return registry.mode() == Mode::kRestricted ? registry.folder().homePath(record.id) : kHome;
}

std::vector<std::string> environmentOf(const Registry& registry, const PoolRecord& record) {
  const bool restricted = registry.mode() == Mode::kRestricted;
  const std::string home = homeOf(registry, record);
  const std::string user = restricted ? "sbx-" + record.id : "root";
  std::vector<std::string> env = {
      "HOME=" + home,
      "USER=" + user,
      "LOGNAME=" + user,
      "PATH=" + home + "/.local/bin:" + kSystemPath,
      "LANG=C.UTF-8",
      "SBX_SANDBOX_ID=" + record.id,
      "SBX_PROXY_DIR=" + home + "/.sbx/proxy",
      "TMPDIR=" + (restricted ? home + "/.tmp" : "/tmp"),
  };
  for (const std::string& entry : record.spec->env) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('=') + 1);
    std::erase_if(env, [&](const std::string& known) { return known.starts_with(name); });
    env.push_back(entry);
  }
  return env;
}

std::vector<std::string> sandboxVariables(const std::vector<std::string>& ofImage) {
  std::vector<std::string> out;
  for (const std::string& entry : ofImage) {
    const std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name.starts_with("SBX_") || std::ranges::find(kOurs, name) != std::end(kOurs)) continue;
    out.push_back(name == "PATH" ? "PATH=" + std::string(kHome) +
                                       "/.local/bin:" + entry.substr(sizeof "PATH=" - 1)
                                 : entry);
  }
  return out;
}

net::Task<Result<std::shared_ptr<const files::Place>>> placeOf(const Registry& registry,
                                                               sandbox::Pooled& pooled,
                                                               PathRule paths) {
  const sandbox::UserIds& ids = registry.folder().userIds();
  const uint32_t uid = ids.first(pooled.record.slot);
  if (registry.mode() == Mode::kRestricted) {
    std::optional<sys::Identity> identity;
    // A home has nothing in it that looks at effective ids, and without a pid namespace the sandbox
    // could find our thread.
    if (!ids.isOwn()) identity = {.uid = uid, .gid = uid, .effective = false};
    const std::string home = registry.folder().of(pooled.record.id).prefix + "home";
    CAY_CO_ASSIGN(Fd root, sys::openAt(registry.folder().fd(), home.c_str(),
                                       O_PATH | O_DIRECTORY | O_NOFOLLOW));
    co_return files::Place::create(std::move(root), "/", identity, files::Paths::kBeneath);
  }
  CAY_CO_ASSIGN(Fd root, co_await pooled.sandbox.root());
  co_return placeInside(std::move(root), registry.mode(), uid, homeOf(registry, pooled.record),
                        paths == PathRule::kHome ? files::Paths::kHome : files::Paths::kRoot);
}

ExecService PooledAccess::exec() {
  const PoolRecord& record = pooled_->record;
  return {.sandbox = pooled_->sandbox,
          .defaults = {.env = environmentOf(registry_, record),
                       .cwd = homeOf(registry_, record),
                       .rootedAtHome = record.spec->paths == PathRule::kHome}};
}

net::Task<Result<FileService>> PooledAccess::files() {
  CAY_CO_ASSIGN(auto place, co_await placeOf(registry_, *pooled_, pooled_->record.spec->paths));
  co_return FileService{.place = std::move(place), .workers = workers_, .bursts = bursts_};
}

}  // namespace cay::host
