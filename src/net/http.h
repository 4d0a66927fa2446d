// HTTP/1.1 as values: fields, request and response heads, query strings. No I/O, no Asio.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cay::net {

struct Field {
  std::string name;
  std::string value;
};

// Header fields in the order they came, duplicates kept; names compare without case.
class Fields {
 public:
  void add(std::string_view name, std::string_view value);
  void erase(std::string_view name);
  void clear() { fields_.clear(); }
  // The first field of that name.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  [[nodiscard]] size_t count(std::string_view name) const;
  // True if a comma-separated element of any field `name` equals `token`, without case.
  [[nodiscard]] bool hasToken(std::string_view name, std::string_view token) const;

  [[nodiscard]] auto begin() const { return fields_.begin(); }
  [[nodiscard]] auto end() const { return fields_.end(); }
  [[nodiscard]] size_t size() const { return fields_.size(); }
  [[nodiscard]] bool empty() const { return fields_.empty(); }

 private:
  std::vector<Field> fields_;
};

// The non-empty elements of a comma-separated field value.
std::vector<std::string_view> listElements(std::string_view value);

// How the end of a body is told.
enum class Framing { kNone, kLength, kChunked, kUntilClose };

// Who is at the other end of a connection.
struct Peer {
  std::string address;    // as text; empty where it has none
  bool loopback = false;  // of this machine, by the loopback
  bool tls = false;
};

struct RequestHead {
  std::string method;  // as sent, e.g. "GET"
  std::string target;  // as sent, e.g. "/v1/files/read?path=%2Fetc"; "host:port" with CONNECT
  std::string path;    // target up to '?', still percent-encoded
  std::string query;   // after '?', still percent-encoded
  int minorVersion = 1;
  Fields fields;
  Framing framing = Framing::kNone;
  uint64_t contentLength = 0;  // with Framing::kLength
  bool keepAlive = true;
  bool expectContinue = false;
  Peer peer;
};

struct ResponseHead {
  int status = 200;
  Fields fields;
};

// "a=1&b=x%20y" decoded: '+' and %20 are spaces, the first of equal names wins.
class Query {
 public:
  // Fails (kInvalid) on a broken percent escape.
  static Result<Query> parse(std::string_view raw);

  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  // All values of that name, in the order they came.
  [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
  // Missing: nullopt. Present but not a whole number: kInvalid that names the parameter.
  [[nodiscard]] Result<std::optional<uint64_t>> getUint(std::string_view name) const;
  // "1" and "true" are true, "0" and "false" false, missing is false; else kInvalid.
  [[nodiscard]] Result<bool> getFlag(std::string_view name) const;

 private:
  std::vector<Field> values_;
};

}  // namespace cay::net
