#include "host/pool_routes.h"

#include "base/clock.h"
#include "base/json.h"
#include "host/exec_routes.h"
#include "host/pooled_access.h"
#include "host/route.h"
#include "host/sandbox_json.h"
#include "net/status.h"

namespace cay::host {
namespace {

using sandbox::PooledPtr;

net::Task<Result<>> createSandboxes(Call& call, PoolServices& services) {
  CAY_CO_ASSIGN(const std::string key, idempotencyKey(call.head));
  CAY_CO_ASSIGN(const std::string body, co_await net::readAll(call.head, call.body, kMaxJsonBytes));
  CAY_CO_ASSIGN(ParsedCreate parsed, parseCreate(body, key, services.defaults));
  CAY_CO_TRY(services.reserve.check(monotonicMs()));
  CAY_CO_ASSIGN(const sandbox::Registry::Created created,
                co_await services.registry.create(std::move(parsed.request)));
  json::Array sandboxes;
  for (const PooledPtr& pooled : created.sandboxes) {
    const sandbox::PoolRecord& record = pooled->record;
    sandboxes.push_back(json::Object{{"id", record.id},
                                     {"token", record.token},
                                     {"home", homeOf(services.registry, record)},
                                     {"created_at_ms", record.createdAtMs}});
  }
  json::Array ignored;
  for (const std::string& name : parsed.ignored) ignored.emplace_back(name);
  json::Object answer;
  answer["sandboxes"] = std::move(sandboxes);
  answer["rejected"] = created.rejected;
  answer["ignored"] = std::move(ignored);
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

net::Task<Result<>> listSandboxes(Call& call, PoolServices& services) {
  json::Array list;
  for (const PooledPtr& pooled : services.registry.list()) list.push_back(summaryOf(*pooled));
  co_return co_await net::sendJson(call.response, 200, json::serialize(list));
}

}  // namespace

net::Task<Result<>> serveSandboxes(Call& call, PoolServices& services) {
  CAY_CO_TRY(allow(call, {"POST", "GET", "HEAD"}));
  if (call.head.method == "POST") co_return co_await createSandboxes(call, services);
  co_return co_await listSandboxes(call, services);
}

net::Task<Result<>> showSandbox(Call& call, PoolServices& services, PooledPtr pooled) {
  auto work = [&services, pooled] {
    return readUsage(services.groups, services.registry.folder(), pooled->record);
  };
  const SandboxUsage usage = co_await services.workers.run(std::move(work));
  const sandbox::PoolSpec& spec = *pooled->record.spec;
  const isolation::Walls walls = services.walls.of(spec.network, spec.limits);
  co_return co_await net::sendJson(call.response, 200,
                                   json::serialize(detailsOf(*pooled, walls, usage)));
}

net::Task<Result<>> tellToken(Call& call, const sandbox::Pooled& pooled) {
  CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
  const json::Object answer{{"id", pooled.record.id}, {"token", pooled.record.token}};
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

net::Task<Result<>> deleteSandbox(Call& call, PoolServices& services, PooledPtr pooled) {
  services.registry.retire(pooled, sandbox::Death::kKilled);
  co_await sandbox::Registry::ended(pooled);
  const json::Object answer{{"id", pooled->record.id}, {"deleted", true}};
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

net::Task<Result<>> answerForGone(Call& call, std::string_view id, sandbox::Death death,
                                  bool isDelete) {
  json::Object answer{{"id", id}, {"cause", sandbox::deathName(death)}};
  if (isDelete) {
    answer["deleted"] = true;
    co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
  }
  answer["error"] = sandbox::goneText(id, death);
  answer["state"] = "gone";
  co_return co_await net::sendJson(call.response, net::httpStatus(Code::kGone),
                                   json::serialize(answer));
}

}  // namespace cay::host
