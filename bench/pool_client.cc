#include "pool_client.h"

#include <stdexcept>

#include "base/json.h"
#include "pool_host.h"

namespace cay::bench {
namespace {

constexpr char kSandboxes[] = "/v1/sandboxes";

json::Value parse(std::string_view text) {
  auto value = json::parse(text);
  if (!value) throw std::runtime_error("an answer that is no JSON: " + value.error().message);
  return *std::move(value);
}

Box boxIn(const json::Value& value) {
  return {.id = std::string(value.at("id").as_string()),
          .token = std::string(value.at("token").as_string())};
}

std::string under(const Box& box, std::string_view route) {
  return std::string(kSandboxes).append("/").append(box.id).append(route);
}

}  // namespace

PoolClient::PoolClient(const PoolHost& host)
    : hostToken_(host.process().token()), client_(host.process().port()) {}

std::string_view PoolClient::ask(std::string_view method, const std::string& target,
                                 std::string_view token, std::string_view body) {
  return client_.ask(request(method, target, token, body));
}

Box PoolClient::create(std::string_view options) {
  const json::Value answer = parse(ask("POST", kSandboxes, hostToken_, options));
  const auto& made = answer.at("sandboxes").as_array();
  if (made.size() != 1) throw std::runtime_error("no sandbox: " + json::serialize(answer));
  return boxIn(made.front());
}

std::string_view PoolClient::exec(const Box& box, std::string_view body) {
  const std::string_view answer = ask("POST", under(box, "/exec"), box.token, body);
  if (!answer.contains("\"exit_code\":0")) {
    throw std::runtime_error("a command failed: " + std::string(answer));
  }
  return answer;
}

std::string PoolClient::read(const Box& box, std::string_view body) {
  std::string output;
  std::string_view lines = exec(box, body);
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const json::Value event = parse(line);
    if (event.at("event") == "stdout") output += event.at("data").as_string();
  }
  return output;
}

void PoolClient::write(const Box& box, std::string_view path, uint64_t size) {
  client_.upload(under(box, "/files/write?path=") + std::string(path), box.token, size);
}

void PoolClient::remove(const Box& box) {
  ask("DELETE", under(box, ""), box.token);
}

std::vector<Box> PoolClient::list() {
  std::vector<Box> boxes;
  const json::Value answer = parse(ask("GET", kSandboxes, hostToken_));
  for (const json::Value& one : answer.as_array()) {
    const Box named = {.id = std::string(one.at("id").as_string()), .token = {}};
    boxes.push_back(boxIn(parse(ask("GET", under(named, "/token"), hostToken_))));
  }
  return boxes;
}

}  // namespace cay::bench
