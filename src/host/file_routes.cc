#include "host/file_routes.h"

#include "base/json.h"
#include "base/text.h"
#include "files/directories.h"
#include "files/entry.h"
#include "files/move.h"
#include "host/file_json.h"
#include "host/file_transfer.h"
#include "host/route.h"

namespace cay::host {
namespace {

constexpr std::string_view kDone = R"({"ok":true})";

net::Task<Result<>> statFile(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  auto work = [place = service.place, path = std::move(path)]() -> Result<std::string> {
    CAY_ASSIGN(const files::StatResult stat, files::stat(*place, path));
    return statJson(stat);
  };
  CAY_CO_ASSIGN(const std::string json, co_await service.workers.run(std::move(work)));
  co_return co_await net::sendJson(call.response, 200, json);
}

net::Task<Result<>> listFiles(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"GET", "HEAD"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  files::ListOptions options;
  CAY_CO_ASSIGN(options.limit, call.query.getUint("limit"));
  if (options.limit == 0U) co_return fail(Code::kInvalid, "limit must be at least 1");
  // Clients that have seen the last page do not ask on; an empty cursor is none.
  if (const auto after = call.query.get("after"); after && !after->empty()) options.after = *after;
  auto work = [place = service.place, path = std::move(path),
               options = std::move(options)]() -> Result<std::string> {
    CAY_ASSIGN(const files::Listing listing, files::list(*place, path, options));
    return listingJson(listing);
  };
  CAY_CO_ASSIGN(const std::string json, co_await service.workers.run(std::move(work)));
  co_return co_await net::sendJson(call.response, 200, json);
}

net::Task<Result<>> deleteFile(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"DELETE"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  CAY_CO_ASSIGN(const bool all, call.query.getFlag("recursive"));
  const auto recursive = all ? files::Recursive::kYes : files::Recursive::kNo;
  auto work = [place = service.place, path = std::move(path), recursive] {
    return files::remove(*place, path, recursive);
  };
  CAY_CO_TRY(co_await service.workers.run(std::move(work)));
  co_return co_await net::sendJson(call.response, 200, kDone);
}

net::Task<Result<>> makeDirectory(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"POST"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  auto work = [place = service.place, path = std::move(path)] {
    return files::makeDirectory(*place, path);
  };
  CAY_CO_TRY(co_await service.workers.run(std::move(work)));
  co_return co_await net::sendJson(call.response, 200, kDone);
}

// A path out of a JSON body.
Result<std::string> pathIn(const json::Value& body, std::string_view key) {
  const json::Value* value = body.is_object() ? body.get_object().if_contains(key) : nullptr;
  if (value == nullptr || !value->is_string()) {
    return fail(Code::kInvalid, quoted(key) + " must be a path");
  }
  return std::string(value->get_string());
}

net::Task<Result<>> moveFile(Call& call, FileService& service) {
  constexpr size_t kMaxBody = size_t{64} << 10;
  CAY_CO_TRY(allow(call, {"POST"}));
  CAY_CO_ASSIGN(const std::string text, co_await net::readAll(call.head, call.body, kMaxBody));
  CAY_CO_ASSIGN(const json::Value body, json::parse(text));
  CAY_CO_ASSIGN(std::string from, pathIn(body, "from"));
  CAY_CO_ASSIGN(std::string to, pathIn(body, "to"));
  auto work = [place = service.place, from = std::move(from), to = std::move(to)] {
    return files::move(*place, from, to);
  };
  CAY_CO_TRY(co_await service.workers.run(std::move(work)));
  co_return co_await net::sendJson(call.response, 200, kDone);
}

}  // namespace

Result<std::string> pathOf(const Call& call) {
  const auto path = call.query.get("path");
  if (!path || path->empty()) return fail(Code::kInvalid, "the parameter 'path' is missing");
  return std::string(*path);
}

net::Task<Result<>> serveFiles(Call& call, FileService& service) {
  const std::string_view path = call.path;
  if (path == "/files/read") co_return co_await readFile(call, service);
  if (path == "/files/write") co_return co_await writeFile(call, service);
  if (path == "/files/stat") co_return co_await statFile(call, service);
  if (path == "/files/list") co_return co_await listFiles(call, service);
  if (path == "/files/delete") co_return co_await deleteFile(call, service);
  if (path == "/files/mkdir") co_return co_await makeDirectory(call, service);
  if (path == "/files/move") co_return co_await moveFile(call, service);
  if (path == "/files/watch") co_return co_await watchFiles(call, service);
  if (path == "/files/tar") {
    CAY_CO_TRY(allow(call, {"GET", "PUT"}));
    if (call.head.method == "PUT") co_return co_await unpackTar(call, service);
    co_return co_await packTar(call, service);
  }
  co_return noSuchRoute(call);
}

}  // namespace cay::host
