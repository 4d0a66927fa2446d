#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include "base/text.h"
#include "host/exec_routes.h"
#include "host/exec_stream.h"
#include "host/route.h"
#include "net/await.h"

namespace cay::host {
namespace {

using sandbox::Exec;
using sandbox::ExecPtr;
using sandbox::Kind;

constexpr size_t kStdinPieceBytes = 64 * 1024;

json::Object listed(const Exec& process) {
  json::Object out;
  out["id"] = process.id;
  out["pid"] = process.pid;
  auto cmd = json::parse(process.cmd);
  out["cmd"] = cmd ? std::move(*cmd) : json::Value("");
  out["tag"] = process.tag.empty() ? json::Value(nullptr) : json::Value(process.tag);
  out["started_at_ms"] = process.startedAtMs;
  out["running"] = !process.exit;
  const auto& exit = process.exit;
  out["exit_code"] = exit && exit->exitCode ? json::Value(*exit->exitCode) : json::Value(nullptr);
  out["signal"] = exit && exit->signal ? json::Value(*exit->signal) : json::Value(nullptr);
  out["cause"] = exit ? json::Value(sandbox::causeName(exit->cause)) : json::Value(nullptr);
  return out;
}

net::Task<Result<>> startProcess(Call& call, ExecService& service) {
  CAY_CO_ASSIGN(const std::string key, idempotencyKey(call.head));
  CAY_CO_ASSIGN(const std::string body, co_await net::readAll(call.head, call.body, kMaxJsonBytes));
  CAY_CO_ASSIGN(ExecRequest request, parseExecRequest(body, Kind::kProcess, key, service.defaults));
  CAY_CO_ASSIGN(const sandbox::Sandbox::Started started,
                co_await service.sandbox.start(std::move(request.start)));
  co_return co_await net::sendJson(call.response, 200, json::serialize(listed(*started.exec)));
}

net::Task<Result<>> listProcesses(Call& call, ExecService& service) {
  json::Array list;
  for (const ExecPtr& process : service.sandbox.processes()) list.emplace_back(listed(*process));
  co_return co_await net::sendJson(call.response, 200, json::serialize(list));
}

net::Task<Result<>> killProcess(Call& call, ExecService& service, std::string_view name) {
  const ExecPtr process = service.sandbox.findProcess(name);
  const bool killed = process && co_await service.sandbox.kill(process);
  // An unknown one is gone as well: a kill can be repeated without harm.
  json::Object answer{{"id", process ? process->id : toValidUtf8(name)}, {"killed", killed}};
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

net::Task<Result<>> writeToPipe(net::Response& client, Fd& pipe, std::string_view data) {
  using boost::asio::experimental::awaitable_operators::operator||;
  boost::asio::posix::basic_stream_descriptor<net::Executor> descriptor(
      co_await boost::asio::this_coro::executor, pipe.get());
  // A process that does not read makes its writer wait; a client that has gone must not wait on.
  auto outcome =
      co_await (boost::asio::async_write(descriptor, boost::asio::buffer(data), net::kAwait) ||
                client.disconnected());
  (void)descriptor.release();
  if (outcome.index() == 1) co_return fail(Code::kClosed, "the client has gone");
  if (const auto error = std::get<0>(std::get<0>(outcome))) {
    co_return fail(Code::kConflict, "the process has closed its standard input");
  }
  co_return Result<>();
}

net::Task<Result<>> feedProcess(Call& call, ExecService& service, ExecPtr process) {
  CAY_CO_TRY(allow(call, {"POST"}));
  CAY_CO_ASSIGN(const bool eof, call.query.getFlag("eof"));
  CAY_CO_ASSIGN(Fd pipe, co_await service.sandbox.openStdin(process));
  uint64_t written = 0;
  std::string buffer(kStdinPieceBytes, '\0');
  while (true) {
    CAY_CO_ASSIGN(const size_t count, co_await call.body.read(buffer));
    if (count == 0) break;
    CAY_CO_TRY(co_await writeToPipe(call.response, pipe, std::string_view(buffer.data(), count)));
    written += count;
  }
  if (eof) service.sandbox.closeStdin(*process);
  const json::Object answer{{"written", written}, {"eof", eof}};
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

net::Task<Result<>> signalProcess(Call& call, ExecService& service, ExecPtr process) {
  CAY_CO_TRY(allow(call, {"POST"}));
  CAY_CO_ASSIGN(const std::string body, co_await net::readAll(call.head, call.body, kMaxJsonBytes));
  CAY_CO_ASSIGN(const int number, parseSignalRequest(body));
  if (process->exit) co_return fail(Code::kConflict, "the process has already ended");
  service.sandbox.signal(*process, number);
  const json::Object answer{{"id", process->id}, {"signal", number}};
  co_return co_await net::sendJson(call.response, 200, json::serialize(answer));
}

}  // namespace

net::Task<Result<>> serveProcesses(Call& call, ExecService& service) {
  const std::vector<std::string_view> parts = segments(call.path);  // processes, id?, verb?
  if (parts.size() == 1) {
    CAY_CO_TRY(allow(call, {"POST", "GET", "HEAD"}));
    if (call.head.method == "POST") co_return co_await startProcess(call, service);
    co_return co_await listProcesses(call, service);
  }
  if (parts.size() == 2 && call.head.method == "DELETE") {
    co_return co_await killProcess(call, service, parts[1]);
  }
  const ExecPtr process = service.sandbox.findProcess(parts[1]);
  if (!process) co_return fail(Code::kNotFound, "no such process: " + quoted(parts[1]));
  if (parts.size() == 2) {
    CAY_CO_TRY(allow(call, {"GET", "HEAD", "DELETE"}));
    co_return co_await net::sendJson(call.response, 200, json::serialize(listed(*process)));
  }
  if (parts.size() == 3 && parts[2] == "output") {
    co_return co_await sendOutput(call, service.sandbox, process);
  }
  if (parts.size() == 3 && parts[2] == "stdin")
    co_return co_await feedProcess(call, service, process);
  if (parts.size() == 3 && parts[2] == "signal")
    co_return co_await signalProcess(call, service, process);
  co_return noSuchRoute(call);
}

}  // namespace cay::host
