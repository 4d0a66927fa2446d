// The hub's API without machines: jobs live in memory and do what the test says.
//
//   hub_api_server FOLDER     FOLDER/hub.db is made; ends with its standard input
//
// Prints one line of JSON when it is ready. Beside the API, POST /test/<job> takes a list of what
// the job does next: {"start":true}, {"say":"a line"}, {"finish":"COMPLETED","message":"…"}.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/fake_engine_fixture.h"
#include "host/route.h"
#include "hub/api_router.h"
#include "hub/restore.h"
#include "hub/retention.h"
#include "net/await.h"
#include "net/server.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using cay::Result;
using cay::engine::FakeEngine;
using cay::hub::HubState;
using cay::hub::Store;
using cay::net::Task;
namespace json = cay::json;

constexpr size_t kMostBody = size_t{16} << 20;

class Nowhere final : public cay::net::Handler {
 public:
  Task<> handle(const cay::net::RequestHead& head, cay::net::Body& /*body*/,
                cay::net::Response& response) override {
    (void)co_await cay::net::sendError(response,
                                       {cay::Code::kNotFound, 0, "nothing at " + head.target});
  }
};

// What the test wants the jobs to do.
class Script final : public cay::net::Handler {
 public:
  explicit Script(FakeEngine& engine) : engine_(engine) {}

  Task<> handle(const cay::net::RequestHead& head, cay::net::Body& body,
                cay::net::Response& response) override {
    const auto steps = cay::host::segments(head.path);
    if (steps.size() != 2 || steps[0] != "test" || !engine_.has(steps[1])) {
      co_return co_await nowhere_.handle(head, body, response);
    }
    const auto text = co_await cay::net::readAll(head, body, kMostBody);
    if (!text) co_return;
    const auto acts = json::parse(*text);
    if (!acts) co_return;
    for (const json::Value& act : acts->as_array()) play(std::string(steps[1]), act.as_object());
    (void)co_await cay::net::sendJson(response, 200, "{}");
  }

 private:
  void play(const std::string& id, const json::Object& act) {
    if (act.contains("start")) engine_.start(id);
    if (const json::Value* line = act.if_contains("say")) {
      engine_.say(id, std::string(line->as_string()));
    }
    if (const json::Value* stage = act.if_contains("finish")) {
      const json::Value* message = act.if_contains("message");
      engine_.finish(id, *cay::engine::stageOf(stage->as_string()),
                     message == nullptr ? "" : std::string(message->as_string()));
    }
    if (act.contains("usage")) {
      engine_.setUsage(id, {.cpuMs = 1000,
                            .memoryBytes = 256 << 20,
                            .memoryLimit = 1 << 30,
                            .milliCpus = 2000,
                            .receivedBytes = 10,
                            .sentBytes = 20});
    }
  }

  FakeEngine& engine_;
  Nowhere nowhere_;
};

// Two people with a token each.
Task<Result<json::Object>> makePeople(Store& store) {
  json::Object tokens;
  for (const char* name : {"tester", "other"}) {
    const std::string id = std::string(20, '0') + (name[0] == 't' ? "aaaa" : "bbbb");
    CAY_CO_TRY(co_await store.insert(
        cay::hub::PrincipalRow{.id = id, .name = name, .type = "user", .createdMs = 0}));
    auto made = cay::hub::makeToken(
        {.name = name, .role = cay::hub::Role::kUser, .principal = id, .namespaces = {"lab"}},
        cay::wallMs());
    tokens[name] = made.secret;
    CAY_CO_TRY(co_await store.insert(made.row));
  }
  co_return tokens;
}

Task<> endWithInput(asio::io_context& io) {
  asio::posix::basic_stream_descriptor<cay::net::Executor> input(io.get_executor(), 0);
  char byte;
  (void)co_await input.async_read_some(asio::buffer(&byte, 1), cay::net::kAwait);
  io.stop();
}

// All that a hub of this kind is made of.
class Hub {
 public:
  Hub(asio::io_context& io, std::unique_ptr<Store> store, const std::string& folder)
      : io_(io),
        store_(std::move(store)),
        callers_(*store_, tokens_),
        jobs_(io, *store_),
        state_{.io = io,
               .workers = *workers_,
               .store = *store_,
               .callers = callers_,
               .jobs = jobs_,
               .engine = engine_,
               .edge = {.domain = "cay.localhost", .tlsPort = 7343},
               .serverFile = "/proc/self/exe",
               .bucketFolder = folder + "/volumes/buckets",
               .onInspected = {}} {}

  Task<Result<>> serve() {
    CAY_CO_ASSIGN(json::Object tokens, co_await makePeople(*store_));
    CAY_CO_TRY(co_await cay::hub::restoreHub(state_, scheduler_));
    asio::co_spawn(io_, callers_.follow(), asio::detached);
    asio::co_spawn(io_, scheduler_.follow(), asio::detached);
    asio::co_spawn(io_, cay::hub::keepForgetting(state_, {}), asio::detached);
    const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
    CAY_CO_ASSIGN(server_, cay::net::Server::listen(io_, {any}, router_, {}, workers_.get()));
    const json::Object ready{{"port", server_->port()}, {"tokens", std::move(tokens)}};
    (void)std::puts(json::serialize(ready).c_str());
    (void)std::fflush(stdout);
    co_return Result<>();
  }

  // What uses the loop from outside, sockets and threads, ends before it; everything else after it,
  // since what waits there still refers to it.
  void close() {
    server_.reset();
    store_.reset();
    workers_.reset();
  }

 private:
  asio::io_context& io_;
  std::unique_ptr<cay::net::WorkerPool> workers_ = std::make_unique<cay::net::WorkerPool>(2);
  std::unique_ptr<Store> store_;
  cay::hub::Tokens tokens_;
  cay::hub::Callers callers_;
  cay::hub::JobTable jobs_;
  FakeEngine engine_;
  HubState state_;
  cay::hub::Scheduler scheduler_{state_};
  Nowhere edge_;
  Script script_{engine_};
  cay::hub::ApiRouter router_{state_, scheduler_, edge_, script_};
  std::unique_ptr<cay::net::Server> server_;
};

Task<> serve(asio::io_context& io, const std::string& folder, std::unique_ptr<Hub>& hub,
             int& code) {
  auto store = co_await Store::open(folder + "/hub.db");
  Result<> served;
  if (store) {
    hub = std::make_unique<Hub>(io, *std::move(store), folder);
    served = co_await hub->serve();
  } else {
    served = std::unexpected(store.error());
  }
  if (served) co_return;
  (void)std::fprintf(stderr, "%s\n", served.error().message.c_str());
  code = 1;
  io.stop();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int code = 0;
  const std::string folder = argv[1];
  std::unique_ptr<Hub> hub;
  asio::io_context io(1);
  asio::co_spawn(io, serve(io, folder, hub, code), asio::detached);
  asio::co_spawn(io, endWithInput(io), asio::detached);
  io.run();
  if (hub) hub->close();
  return code;
}
