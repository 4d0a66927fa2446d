// The API over a fake engine, on a port of the loopback, with a plain client.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/json.h"
#include "engine/fake_engine_fixture.h"
#include "hub/api_router.h"
#include "hub/restore.h"
#include "hub/store_fixture.h"
#include "net/server.h"
#include "testing/eventually.h"
#include "testing/raw_client.h"
#include "testing/temp_dir.h"

namespace cay::hub {

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  [[nodiscard]] json::Value json() const {
    auto value = json::parse(body);
    if (!value) throw std::runtime_error("no JSON: " + body);
    return *std::move(value);
  }
  [[nodiscard]] std::string error() const { return std::string(json().at("error").as_string()); }
  [[nodiscard]] std::string id() const { return std::string(json().at("id").as_string()); }
  [[nodiscard]] std::string stage() const {
    return std::string(json().at("status").at("stage").as_string());
  }
  // "" if there is no such field.
  [[nodiscard]] std::string field(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

// Says whose turn it was.
class Elsewhere final : public net::Handler {
 public:
  explicit Elsewhere(std::string name) : name_(std::move(name)) {}
  net::Task<> handle(const net::RequestHead& head, net::Body& /*body*/,
                     net::Response& response) override {
    (void)co_await net::send(response, {}, name_ + " " + head.target);
  }

 private:
  std::string name_;
};

// One life of a hub; the files and the engine may outlive it.
class ApiHub {
 public:
  // With the people and tokens of the store, and whatever else an earlier one left there.
  ApiHub(const std::string& folder, engine::FakeEngine& engine)
      : store_(folder + "/hub.db"),
        callers_(*store_.operator->(), tokens_),
        jobs_(store_.loop().io(), *store_.operator->()),
        state_{.io = store_.loop().io(),
               .workers = workers_,
               .store = *store_.operator->(),
               .callers = callers_,
               .jobs = jobs_,
               .engine = engine,
               .edge = {.domain = "cay.localhost", .tlsPort = 7343},
               .serverFile = folder + "/cay-host",
               .bucketFolder = "/state/volumes/buckets",
               .onInspected = {}} {
    const auto restored = store_.await(restoreHub(state_, scheduler_));
    if (!restored) throw std::runtime_error(restored.error().message);
    const boost::asio::ip::tcp::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
    net::ServerLimits limits;
    limits.connects = net::Connects::kAllowed;
    server_ = store_.loop().call([&] {
      return net::Server::listen(store_.loop().io(), {any}, router_, limits, &workers_).value();
    });
  }
  ~ApiHub() {
    store_.loop().call([&] { server_->stop(); });
    EXPECT_TRUE(cay::testing::eventually(
        [&] { return store_.loop().call([&] { return server_->connections(); }) == 0; }));
    EXPECT_TRUE(store_.await(jobs_.settled(Millis(15'000))));
    store_.loop().call([&] { server_.reset(); });
  }
  ApiHub(const ApiHub&) = delete;
  ApiHub& operator=(const ApiHub&) = delete;

  cay::testing::RawClient connect() const {
    return cay::testing::RawClient::connect(server_->port());
  }
  HubState& state() { return state_; }
  Scheduler& scheduler() { return scheduler_; }
  OpenStore& store() { return store_; }
  // On the loop's thread.
  template <typename Function>
  auto call(Function function) {
    return store_.loop().call(std::move(function));
  }

 private:
  OpenStore store_;
  net::WorkerPool workers_{1};
  Tokens tokens_;
  Callers callers_;
  JobTable jobs_;
  HubState state_;
  Scheduler scheduler_{state_};
  Elsewhere edge_{"edge"};
  Elsewhere relay_{"relay"};
  ApiRouter router_{state_, scheduler_, edge_, relay_};
  std::unique_ptr<net::Server> server_;
};

// Two people, "tester" with a right to "lab", and "other"; and the tester's requests.
class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    OpenStore store((dir_.path() / "hub.db").string());
    for (const char* name : {"tester", "other"}) {
      const std::string id = idOf(name);
      insert(store, PrincipalRow{.id = id, .name = name, .type = "user"});
      MadeToken made = makeToken(
          {.name = name, .role = Role::kUser, .principal = id, .namespaces = {"lab"}}, wallMs());
      if (std::string_view(name) == "other") made.row.namespaces.clear();
      tokenOf_[name] = made.secret;
      insert(store, made.row);
    }
    MadeToken proxy = makeToken(
        {.name = "proxy", .role = Role::kProxy, .principal = idOf("tester"), .namespaces = {}},
        wallMs());
    tokenOf_["proxy"] = proxy.secret;
    insert(store, proxy.row);
  }

  static std::string idOf(std::string_view name) {
    return name == "tester" ? "5e9ecfc04957053f60648a3e" : "5e9ecfc04957053f60648a3f";
  }

  Answer ask(const std::string& method, const std::string& path, const std::string& body = {},
             const std::string& as = "tester") {
    auto client = hub().connect();
    client.send(request(method, path, body, as));
    return parse(client.receiveToEnd());
  }
  Answer get(const std::string& path) { return ask("GET", path); }
  Answer post(const std::string& path, const std::string& body = {}) {
    return ask("POST", path, body);
  }

  std::string request(const std::string& method, const std::string& path,
                      const std::string& body = {}, const std::string& as = "tester") {
    std::string text = method + " " + path + " HTTP/1.1\r\nHost: hub:7340\r\nConnection: close\r\n";
    if (!as.empty()) text += "Authorization: Bearer " + tokenOf_[as] + "\r\n";
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }
  static Answer parse(const std::string& text) {
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) return {.status = 0, .head = text, .body = {}};
    return {.status = std::stoi(text.substr(9, 3)),
            .head = text.substr(0, end + 2),
            .body = text.substr(end + 4)};
  }

  // A plain job that the engine has taken; gives its id.
  std::string start(const std::string& more = {}, const std::string& ns = "tester") {
    const Answer answer = post("/api/jobs/" + ns, plainBody(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.id();
  }
  static std::string plainBody(const std::string& more = {}) {
    return R"({"dockerImage":"python:3.12","command":["true"],"arguments":[],"environment":{},)"
           R"("flavor":"cpu-basic")" +
           (more.empty() ? "" : "," + more) + "}";
  }
  static std::string path(const std::string& id, const std::string& verb = {}) {
    return "/api/jobs/tester/" + id + (verb.empty() ? "" : "/" + verb);
  }

  ApiHub& hub() {
    if (!hub_) hub_.emplace(dir_.path().string(), engine_);
    return *hub_;
  }
  // The end of this hub, and the next one.
  void restart() {
    hub_.reset();
    hub();
  }
  engine::FakeEngine& engine() { return engine_; }
  template <typename Function>
  auto call(Function function) {
    return hub().call(std::move(function));
  }

  cay::testing::TempDir dir_;
  std::map<std::string, std::string> tokenOf_;

 private:
  template <typename Row>
  static void insert(OpenStore& store, const Row& row) {
    const auto inserted = store.await(store->insert(row));
    if (!inserted) throw std::runtime_error(inserted.error().message);
  }

  engine::FakeEngine engine_;
  std::optional<ApiHub> hub_;
};

}  // namespace cay::hub
