// The list of jobs: filters and pages.
#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "hub/job_routes.h"

namespace cay::hub {
namespace {

using engine::Stage;

constexpr uint32_t kPage = 100;
// A stage that clients know and no job here ever has.
constexpr std::string_view kDeleted = "DELETED";

// nullopt if stages are asked for that no job has.
Result<std::optional<std::vector<Stage>>> stagesOf(const net::Query& query) {
  std::vector<Stage> stages;
  const auto names = query.all("stage");
  for (const std::string_view name : names) {
    if (name == kDeleted) continue;
    const auto stage = engine::stageOf(name);
    if (!stage) {
      return fail(Code::kInvalid,
                  "the parameter 'stage' must be one of SCHEDULING, RUNNING, COMPLETED, ERROR, "
                  "CANCELED, DELETED, not " +
                      quoted(name));
    }
    stages.push_back(*stage);
  }
  if (!names.empty() && stages.empty()) return std::nullopt;
  return stages;
}

// The same request for the next page. Clients take it as it is.
std::string nextPage(const net::RequestHead& head, int64_t cursor) {
  std::string url = head.peer.tls ? "https://" : "http://";
  url.append(head.fields.get("Host").value_or("localhost")).append(head.path).append("?");
  for (const std::string_view parameter : split(head.query, '&')) {
    if (parameter.empty() || parameter.starts_with("cursor=")) continue;
    url.append(parameter).append("&");
  }
  return "<" + url + "cursor=" + std::to_string(cursor) + ">; rel=\"next\"";
}

Result<JobFilter> filterOf(const ApiCall& call, std::vector<Stage> stages) {
  JobFilter filter;
  filter.ns = call.ns();
  filter.stages = std::move(stages);
  CAY_ASSIGN(filter.labels, labelsOf(call.query));
  CAY_ASSIGN(const auto cursor, call.query.getUint("cursor"));
  filter.beforeSeq =
      static_cast<int64_t>(std::min<uint64_t>(cursor.value_or(INT64_MAX), INT64_MAX));
  filter.limit = kPage + 1;  // one more tells whether there is a next page
  return filter;
}

}  // namespace

net::Task<Result<>> listJobs(ApiCall& call) {
  CAY_CO_ASSIGN(auto stages, stagesOf(call.query));
  std::vector<JobRow> rows;
  if (stages) {
    CAY_CO_ASSIGN(JobFilter filter, filterOf(call, *std::move(stages)));
    CAY_CO_ASSIGN(rows, co_await call.state.jobs.list(std::move(filter)));
  }
  net::ResponseHead head = newHead(call);
  if (rows.size() > kPage) {
    rows.resize(kPage);
    head.fields.add("Link", nextPage(call.head, rows.back().seq));
  }
  head.fields.add("Content-Type", "application/json");
  const PrincipalRow owner = call.state.callers.owner(call.ns());
  const int64_t now = wallMs();
  json::Array infos;
  for (const JobRow& row : rows) {
    CAY_CO_ASSIGN(json::Object info, jobInfo(row, owner, call.state.edge, now));
    infos.push_back(std::move(info));
  }
  const std::string body = json::serialize(infos);
  co_return co_await net::send(call.response, std::move(head), body);
}

}  // namespace cay::hub
