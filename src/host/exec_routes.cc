#include "host/exec_routes.h"

#include "base/text.h"
#include "host/exec_stream.h"
#include "host/route.h"

namespace cay::host {
namespace {

using sandbox::Exec;
using sandbox::ExecPtr;
using sandbox::Follower;
using sandbox::Kind;
using sandbox::Offsets;

constexpr size_t kMaxKeyBytes = 255;

json::Object stateOf(const Exec& exec) {
  json::Object state;
  state["exec_id"] = exec.id;
  state["state"] = exec.exit ? "exited" : "running";
  state["pid"] = exec.pid;
  state["started_at_ms"] = exec.startedAtMs;
  state["exit"] = exec.exit ? json::Value(exitObject(exec)) : json::Value(nullptr);
  return state;
}

}  // namespace

Result<std::string> idempotencyKey(const net::RequestHead& head) {
  const auto key = head.fields.get("Idempotency-Key");
  if (!key) return std::string();
  if (key->empty() || key->size() > kMaxKeyBytes || !isValidUtf8(*key)) {
    return fail(Code::kInvalid, "Idempotency-Key must have 1 to 255 bytes of text");
  }
  return std::string(*key);
}

net::Task<Result<>> runExec(Call& call, ExecService& service) {
  CAY_CO_TRY(allow(call, {"POST"}));
  CAY_CO_ASSIGN(const std::string key, idempotencyKey(call.head));
  CAY_CO_ASSIGN(const std::string body, co_await net::readAll(call.head, call.body, kMaxJsonBytes));
  CAY_CO_ASSIGN(ExecRequest request, parseExecRequest(body, Kind::kExec, key, service.defaults));
  const OutputEncoding encoding = request.encoding;
  CAY_CO_ASSIGN(sandbox::Sandbox::Started started,
                co_await service.sandbox.start(std::move(request.start)));
  co_return co_await streamOutput(call, *started.follower,
                                  {.encoding = encoding, .startEvent = started.exec->pid != 0});
}

net::Task<Result<>> sendOutput(Call& call, sandbox::Sandbox& sandbox, ExecPtr exec) {
  CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
  Offsets from;
  CAY_CO_ASSIGN(const auto fromStdout, call.query.getUint("stdout"));
  CAY_CO_ASSIGN(const auto fromStderr, call.query.getUint("stderr"));
  from.at[sandbox::kStdout] = fromStdout.value_or(0);
  from.at[sandbox::kStderr] = fromStderr.value_or(0);
  StreamOptions options;
  CAY_CO_ASSIGN(options.follow, call.query.getFlag("follow"));
  if (const auto encoding = call.query.get("encoding")) {
    CAY_CO_ASSIGN(options.encoding, parseEncoding(*encoding));
  }
  // Reading what is there is not listening: only who follows keeps an exec alive.
  Follower follower(sandbox, std::move(exec), from, /*listening=*/options.follow);
  co_await follower.sync();
  co_return co_await streamOutput(call, follower, options);
}

net::Task<Result<>> serveExecs(Call& call, ExecService& service) {
  const std::vector<std::string_view> parts = segments(call.path);  // execs, id, output?
  const ExecPtr exec = parts.size() >= 2 ? service.sandbox.find(parts[1]) : nullptr;
  if (parts.size() == 2 || (parts.size() == 3 && parts[2] == "output")) {
    if (!exec) {
      co_return fail(Code::kNotFound, "no such exec: " + quoted(parts[1]) +
                                          " (it never was, or its record has been dropped)");
    }
    if (parts.size() == 3) co_return co_await sendOutput(call, service.sandbox, exec);
    CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
    co_return co_await net::sendJson(call.response, 200, json::serialize(stateOf(*exec)));
  }
  co_return noSuchRoute(call);
}

}  // namespace cay::host
