#include "hub/edge.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "hub/credentials.h"
#include "hub/identity.h"

namespace cay::hub {
namespace {

// Clients give up on one answer after 5 s, and ask again.
constexpr Millis kHealthWait{4500};

bool contains(const std::vector<uint16_t>& ports, uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

bool isServer(const EdgeName& name, const Job& job) {
  return name.port == engine::kSandboxPort && job.row.kind != engine::Kind::kPlain;
}

ApiError unknown(const EdgeName& name) {
  return {.status = 404, .message = "there is no job " + name.job, .field = {}};
}

ApiError over(const Job& job) {
  std::string message = "job " + job.row.id + " is over: ";
  message.append(engine::stageName(job.row.stage));
  if (!job.row.message.empty()) message.append(": ").append(job.row.message);
  return {.status = 410, .message = std::move(message), .field = {}};
}

ApiError notYet(const Job& job) {
  std::string message = "job " + job.row.id + " does not serve yet: ";
  message.append(engine::stageName(job.row.stage));
  if (!job.row.message.empty()) message.append(": ").append(job.row.message);
  return {.status = 503, .message = std::move(message), .field = {}};
}

std::string_view queryOf(const net::RequestHead& head) {
  const size_t mark = head.target.find('?');
  return mark == std::string::npos ? "" : std::string_view(head.target).substr(mark);
}

}  // namespace

net::Task<> Edge::byHost(const net::RequestHead& head, net::Body& body, net::Response& response) {
  auto name = parseEdgeHost(head.fields.get("host").value_or(""), at_.address.domain);
  if (!name) {
    (void)co_await sendApiError(
        response, {.status = 421, .message = "this host is not served here", .field = {}});
    co_return;
  }
  co_await answer({.name = *std::move(name), .target = head.target, .prefix = {}}, head, body,
                  response);
}

net::Task<> Edge::byPath(const net::RequestHead& head, net::Body& body, net::Response& response) {
  auto found = parseEdgePath(head.path);
  if (!found) {
    (void)co_await sendApiError(
        response,
        {.status = 404, .message = "this path names no port: use /x/<job>--<port>/", .field = {}});
    co_return;
  }
  auto& [name, rest] = *found;
  Request request{.name = std::move(name),
                  .target = std::string(rest).append(queryOf(head)),
                  .prefix = head.path.substr(0, head.path.size() - rest.size())};
  co_await answer(std::move(request), head, body, response);
}

net::Task<> Edge::answer(Request request, const net::RequestHead& head, net::Body& body,
                         net::Response& response) {
  const auto admitted = co_await admit(request.name, head);
  if (!admitted) {
    (void)co_await sendApiError(response, admitted.error());
    co_return;
  }
  Job& job = **admitted;
  const bool toServer = isServer(request.name, job);
  if (toServer) at_.reachability.reached(job);
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  if (toServer && path == "/health" && !co_await untilServing(job, response)) co_return;
  std::optional<ApiError> refusal;
  if (engine::isTerminal(job.row.stage)) {
    refusal = over(job);
  } else if (job.row.stage == engine::Stage::kScheduling ||
             (toServer && path == "/health" && !job.serving)) {
    refusal = notYet(job);
  }
  if (refusal) {
    (void)co_await sendApiError(response, *refusal);
    co_return;
  }
  const net::StreamSource source = [this, &request] {
    return at_.engine.dial(request.name.job, request.name.port);
  };
  const auto passed = co_await net::pass(head, body, response, onward(request, job, head), source);
  if (passed) co_return;
  const bool clientHasGone = passed.error().code == Code::kClosed;
  if (response.begun() || clientHasGone) {
    response.abort();
  } else {
    (void)co_await sendApiError(
        response, engine::isTerminal(job.row.stage) ? over(job) : apiErrorOf(passed.error()));
  }
}

net::Task<std::expected<JobPtr, ApiError>> Edge::admit(const EdgeName& name,
                                                       const net::RequestHead& head) {
  const auto caller = callerOf(head, at_.tokens, wallMs());
  JobPtr job = at_.jobs.find(name.job);
  const bool isPublic = job && contains(job->row.publicPorts, name.port);
  if (!isPublic) {
    if (!caller) co_return std::unexpected(caller.error());
    if (!job) {
      auto found = co_await at_.jobs.get(name.job);
      if (!found && found.error().code == Code::kNotFound) co_return std::unexpected(unknown(name));
      if (!found) co_return std::unexpected(apiErrorOf(found.error()));
      job = *std::move(found);
    }
    // Ids of others are nobody's business: not even that there is one.
    if (!caller->may(job->row.ns)) co_return std::unexpected(unknown(name));
  }
  if (engine::isTerminal(job->row.stage)) co_return std::unexpected(over(*job));
  if (!contains(job->row.ports, name.port)) {
    co_return std::unexpected(ApiError{
        .status = 404,
        .message = "job " + name.job + " does not expose port " + std::to_string(name.port),
        .field = {}});
  }
  co_return job;
}

net::Task<bool> Edge::untilServing(Job& job, net::Response& response) {
  using namespace boost::asio::experimental::awaitable_operators;
  const int64_t until = monotonicMs() + kHealthWait.count();
  while (!job.serving && !engine::isTerminal(job.row.stage)) {
    const Millis left(until - monotonicMs());
    if (left <= Millis(0)) break;
    const auto first = co_await (job.changed.wait(left) || response.disconnected());
    if (first.index() == 1) co_return false;
  }
  co_return true;
}

net::Onward Edge::onward(const Request& request, const Job& job,
                         const net::RequestHead& head) const {
  const EdgeName& name = request.name;
  net::Onward onward{
      .server = "port " + std::to_string(name.port) + " of job " + name.job,
      .target = request.target,
      .host = name.job + "--" + std::to_string(name.port) + "." + at_.address.domain,
      // What a client says about who has passed its request on is not to be believed.
      .withheld = {"proxy-authorization", "forwarded", "x-forwarded-for", "x-forwarded-host",
                   "x-forwarded-port", "x-forwarded-prefix", "x-forwarded-proto"},
      .added = {}};
  const bool isPublic = contains(job.row.publicPorts, name.port);
  const bool oursInside = std::ranges::any_of(head.fields, [](const net::Field& field) {
    return equalIgnoreCase(field.name, "authorization") && holdsOurToken(field.value);
  });
  // Servers that everybody reaches may have tokens of their own.
  if (!isPublic || oursInside) onward.withheld.emplace_back("authorization");
  if (!isServer(name, job)) onward.withheld.emplace_back("x-sandbox-token");
  onward.added.add("X-Forwarded-Proto", head.peer.tls ? "https" : "http");
  if (const auto host = head.fields.get("host")) onward.added.add("X-Forwarded-Host", *host);
  if (!request.prefix.empty()) onward.added.add("X-Forwarded-Prefix", request.prefix);
  return onward;
}

}  // namespace cay::hub
