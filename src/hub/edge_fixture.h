// A hub's edges in tests: everything between the sockets and the engine, which is the fake one. Its
// API answers what it was asked; GET /inspect/<job> counts as an inspection.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "engine/fake_engine_fixture.h"
#include "hub/connect_proxy.h"
#include "hub/edge.h"
#include "hub/front_door.h"
#include "hub/identity.h"
#include "hub/outbound.h"
#include "hub/reachability.h"
#include "hub/store_fixture.h"
#include "hub/tls_fixture.h"
#include "hub/tls_listener.h"
#include "net/server.h"
#include "testing/eventually.h"
#include "testing/raw_client.h"
#include "testing/temp_dir.h"

namespace cay::hub {

struct EdgeOptions {
  TunnelLimits tunnels = {};
  std::optional<PreviousProxy> proxy = std::nullopt;
  FrontDoor::ApiByTls apiByTls = FrontDoor::ApiByTls::kNo;
  bool realTime = false;  // else the reachability lives by now(), and looks when the test does
};

class TestEdge {
 public:
  explicit TestEdge(EdgeOptions options = {})
      : store_(std::make_unique<OpenStore>((dir_.path() / "hub.db").string())),
        jobs_(loop().io(), *store_->operator->()),
        outbound_(std::make_unique<Outbound>(std::move(options.proxy))) {
    addTokens();
    loop().call([&] { build(options); });
  }
  ~TestEdge() {
    (void)await(jobs_.settled(Millis(15'000)));
    loop().call([&] {
      tls_.reset();
      server_.reset();
    });
    outbound_.reset();
    // With the loop go the tasks that still wait, before what they use.
    store_.reset();
  }
  TestEdge(const TestEdge&) = delete;
  TestEdge& operator=(const TestEdge&) = delete;

  cay::testing::LoopThread& loop() { return store_->loop(); }
  template <typename T>
  T await(net::Task<T> task) {
    return store_->await(std::move(task));
  }
  engine::FakeEngine& engine() { return engine_; }
  JobTable& jobs() { return jobs_; }
  net::Server& server() { return *server_; }
  Reachability& reachability() { return reachability_; }
  [[nodiscard]] const EdgeAddress& address() const { return address_; }
  [[nodiscard]] uint16_t apiPort() const { return apiPort_; }
  [[nodiscard]] std::string caFile() const { return ca_.ca.caFile(); }
  [[nodiscard]] std::string bundle() { return orThrow(ca_.ca.bundle()); }
  // What the reachability takes for the time.
  int64_t& now() { return now_; }

  // A job of alice's, as the client left it.
  JobPtr add(const std::string& id, engine::Kind kind, std::vector<uint16_t> ports,
             std::vector<uint16_t> open = {}) {
    JobRow row = jobRow(0, "alice");
    row.id = id;
    row.kind = kind;
    row.ports = std::move(ports);
    row.publicPorts = std::move(open);
    row.initiatorId = "p-alice";
    row.initiatorName = "alice";
    auto job = await(jobs_.add(std::move(row)));
    if (!job) throw std::runtime_error(job.error().message);
    engine::JobSpec spec;
    spec.id = id;
    spec.ns = "alice";
    spec.kind = kind;
    (void)await(engine_.submit(std::move(spec)));
    return *job;
  }
  void move(const std::string& id, engine::Stage stage, std::string message,
            int64_t startedMs = 0) {
    engine::Status status;
    status.stage = stage;
    status.message = std::move(message);
    status.startedAtMs = startedMs;
    loop().call([&] { engine_.move(id, status); });
  }
  // Runs, and serves the port by a listener of the test.
  void start(const std::string& id, uint16_t port, uint16_t local) {
    loop().call([&] {
      engine_.start(id);
      engine_.serveAt(id, port, local);
    });
  }

  cay::testing::RawClient plain() const { return cay::testing::RawClient::connect(apiPort_); }
  // Shakes hands; throws if the hub is not trusted.
  OpensslClient secure(const std::string& name) {
    OpensslClient client(cay::testing::RawClient::connect(address_.tlsPort), caFile(), name);
    if (!client.connect()) throw std::runtime_error("no TLS");
    return client;
  }

  std::string alice, bob, admin, proxyToken;

 private:
  class Api final : public net::Handler {
   public:
    explicit Api(TestEdge& edge) : edge_(edge) {}
    net::Task<> handle(const net::RequestHead& head, net::Body& body,
                       net::Response& response) override {
      if (head.method == "CONNECT" || head.path.starts_with("/x/")) {
        co_return co_await edge_.side_->handle(head, body, response);
      }
      constexpr std::string_view kInspect = "/inspect/";
      const auto caller = callerOf(head, edge_.tokens_, wallMs());
      if (head.path.starts_with(kInspect) && caller) {
        const JobPtr job = edge_.jobs_.find(head.path.substr(kInspect.size()));
        if (job) {
          edge_.reachability_.inspected(*job, *caller);
          const json::Object info{{"stage", engine::stageName(job->row.stage)},
                                  {"message", job->row.message}};
          (void)co_await net::sendJson(response, 200, json::serialize(info));
          co_return;
        }
      }
      (void)co_await net::send(response, {}, "api " + head.path);
    }

   private:
    TestEdge& edge_;
  };

  void addTokens() {
    Identities all{.principals = {{.id = "p-alice", .name = "alice", .type = "user"},
                                  {.id = "p-bob", .name = "bob", .type = "user"}},
                   .tokens = {}};
    const auto make = [&](Role role, const char* principal,
                          std::vector<std::string> namespaces = {}) {
      MadeToken made = makeToken(
          {.name = "n", .role = role, .principal = principal, .namespaces = std::move(namespaces)},
          wallMs());
      all.tokens.push_back(made.row);
      return made.secret;
    };
    alice = make(Role::kUser, "p-alice");
    bob = make(Role::kUser, "p-bob");
    admin = make(Role::kAdmin, "p-bob");
    proxyToken = make(Role::kProxy, "p-alice");
    loop().call([&] { tokens_.replace(all); });
  }

  void build(const EdgeOptions& options) {
    tls_ = std::make_unique<TlsListener>(loop().io(), ca_.context, reachability_);
    connects_.emplace(ConnectProxy::Parts{.address = address_,
                                          .tokens = tokens_,
                                          .reachability = reachability_,
                                          .tls = *tls_,
                                          .outbound = *outbound_},
                      options.tunnels);
    side_.emplace(edge_, *connects_);
    front_.emplace(api_, edge_, address_, options.apiByTls);
    using boost::asio::ip::tcp;
    const tcp::endpoint v4(boost::asio::ip::address_v4::loopback(), 0);
    const tcp::endpoint v6(boost::asio::ip::address_v6::loopback(), 0);
    net::ServerLimits limits;
    limits.connects = net::Connects::kAllowed;
    server_ = orThrow(net::Server::listen(loop().io(), {v4}, *front_, limits));
    tls_->serveWith(*server_);
    if (const auto listening = tls_->listen({v4, v6}); !listening) {
      throw std::runtime_error(listening.error().message);
    }
    apiPort_ = server_->port();
    address_.tlsPort = tls_->port();
    realTime_ = options.realTime;
    if (realTime_) {
      boost::asio::co_spawn(loop().io(), reachability_.watch(), boost::asio::detached);
    }
    boost::asio::co_spawn(loop().io(), engine_.open({}, jobs_), boost::asio::detached);
  }

  cay::testing::TempDir dir_;
  TestCa ca_;
  std::unique_ptr<OpenStore> store_;
  Tokens tokens_;
  JobTable jobs_;
  engine::FakeEngine engine_;
  EdgeAddress address_{.domain = "cay.localhost", .tlsPort = 0};
  int64_t now_ = 1'000'000;
  bool realTime_ = false;
  Reachability reachability_{
      loop().io(),       jobs_,
      engine_,           address_,
      "/the/bundle.pem", [this] { return realTime_ ? monotonicMs() : now_; }};
  std::unique_ptr<Outbound> outbound_;
  Edge edge_{{.address = address_,
              .tokens = tokens_,
              .jobs = jobs_,
              .engine = engine_,
              .reachability = reachability_}};
  Api api_{*this};
  std::unique_ptr<TlsListener> tls_;
  std::optional<ConnectProxy> connects_;
  std::optional<SideDoor> side_;
  std::optional<FrontDoor> front_;
  std::unique_ptr<net::Server> server_;
  uint16_t apiPort_ = 0;
};

}  // namespace cay::hub
