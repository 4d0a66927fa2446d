// A hub's edges without a hub, for tests with real clients: TLS, CONNECT and the passage to jobs,
// whose servers are ports of this machine. GET /inspect/<job> of its API counts as an inspection.
//
//   hub_edge_server [PREVIOUS_PROXY_PORT]
//
// Prints one line of JSON when it is ready. Then it does what its standard input says, a JSON
// object for each line, and answers each with one; ends with its input:
//
//   {"do": "add", "job": ID, "kind": 0|1|2, "ports": [...], "public": [...]}
//   {"do": "start", "job": ID, "port": PORT, "at": PORT}
//   {"do": "finish", "job": ID, "stage": STAGE, "message": TEXT}
//   {"do": "status", "job": ID}
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "base/json.h"
#include "hub/edge_fixture.h"

namespace {

using cay::hub::TestEdge;
namespace json = cay::json;

void say(const json::Object& object) {
  (void)std::puts(json::serialize(object).c_str());
  (void)std::fflush(stdout);
}

std::vector<uint16_t> portsOf(const json::Value& list) {
  std::vector<uint16_t> ports;
  for (const json::Value& port : list.as_array()) ports.push_back(port.to_number<uint16_t>());
  return ports;
}

json::Object act(TestEdge& edge, const json::Object& command) {
  const std::string what(command.at("do").as_string());
  const std::string job(command.at("job").as_string());
  if (what == "add") {
    edge.add(job, static_cast<cay::engine::Kind>(command.at("kind").as_int64()),
             portsOf(command.at("ports")), portsOf(command.at("public")));
  } else if (what == "start") {
    edge.start(job, command.at("port").to_number<uint16_t>(),
               command.at("at").to_number<uint16_t>());
  } else if (what == "finish") {
    const auto stage = cay::engine::stageOf(std::string_view(command.at("stage").as_string()));
    edge.loop().call([&] {
      edge.engine().finish(job, stage.value(), std::string(command.at("message").as_string()));
    });
  }
  return edge.loop().call([&] {
    const cay::hub::JobRow& row = edge.jobs().find(job)->row;
    return json::Object{{"stage", cay::engine::stageName(row.stage)}, {"message", row.message}};
  });
}

void serve(const cay::hub::EdgeOptions& options) {
  TestEdge edge(options);
  say({{"port", edge.apiPort()},
       {"tls_port", edge.address().tlsPort},
       {"ca", edge.caFile()},
       {"bundle", edge.bundle()},
       {"alice", edge.alice},
       {"bob", edge.bob},
       {"admin", edge.admin},
       {"proxy", edge.proxyToken}});
  for (std::string line; std::getline(std::cin, line);) {
    const auto command = json::parse(line);
    if (!command) throw std::runtime_error(command.error().message);
    say(act(edge, command->as_object()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  cay::hub::EdgeOptions options;
  options.realTime = true;
  if (argc == 2) {
    options.proxy = cay::hub::PreviousProxy{.host = "127.0.0.1",
                                            .port = static_cast<uint16_t>(std::stoi(argv[1])),
                                            .authorization = {},
                                            .without = {}};
  }
  try {
    serve(options);
  } catch (const std::exception& problem) {
    (void)std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
