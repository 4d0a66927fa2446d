#include "host/sandbox_routes.h"

#include "host/proxy_routes.h"
#include "host/route.h"

namespace cay::host {
namespace {

net::Task<Result<>> dispatch(Call& call, SandboxAccess& access) {
  const std::string_view path = call.path;
  if (isBelow(path, "/files")) {
    CAY_CO_ASSIGN(FileService files, co_await access.files());
    co_return co_await serveFiles(call, files);
  }
  ExecService exec = access.exec();
  if (path == "/exec") co_return co_await runExec(call, exec);
  if (isBelow(path, "/execs")) co_return co_await serveExecs(call, exec);
  if (isBelow(path, "/processes")) co_return co_await serveProcesses(call, exec);
  co_return noSuchRoute(call);
}

}  // namespace

net::Task<Result<>> routeSandbox(Call& call, SandboxAccess& access) {
  if (isBelow(call.path, "/proxy")) {
    co_return co_await proxy(call, access.dialer(), access.ownPort());
  }
  if (call.head.method == "OPTIONS") co_return co_await answerOptions(call);
  CAY_CO_ASSIGN(call.query, net::Query::parse(call.head.query));
  co_return co_await dispatch(call, access);
}

}  // namespace cay::host
