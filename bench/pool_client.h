// The routes of a pool over one kept connection. Throws std::runtime_error when an answer is not
// what a healthy pool gives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"

namespace cay::bench {

class PoolHost;

struct Box {
  std::string id;
  std::string token;
};

class PoolClient {
 public:
  explicit PoolClient(const PoolHost& host);

  // `options`: the body of the request, a JSON object.
  Box create(std::string_view options = "{}");
  // Runs a command to its end, which must be success. Gives the answer's lines, valid until the
  // next call.
  std::string_view exec(const Box& box, std::string_view body = R"({"cmd":["/bin/true"]})");
  // The same, and gives what the command wrote to its standard output.
  std::string read(const Box& box, std::string_view body);
  // PUTs so many bytes of no meaning.
  void write(const Box& box, std::string_view path, uint64_t size);
  void remove(const Box& box);

  // Everything there is, with the tokens that the host hands out to its owner.
  std::vector<Box> list();

 private:
  std::string_view ask(std::string_view method, const std::string& target, std::string_view token,
                       std::string_view body = {});

  const std::string hostToken_;
  Client client_;
};

}  // namespace cay::bench
