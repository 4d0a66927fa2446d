// The names under which the ports of jobs are reached: by host, <job>--<port>.<domain>, and by path
// for clients of plain HTTP, /x/<job>--<port>/...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cay::hub {

struct EdgeName {
  std::string job;  // in lower case
  uint16_t port = 0;
  bool operator==(const EdgeName&) const = default;
};

// What a Host field or a server name of TLS means, with or without a port of its own, in any case;
// nullopt for everything that is not the port of a job below the domain.
std::optional<EdgeName> parseEdgeHost(std::string_view host, std::string_view domain);

// The name in the path of a request, and the rest of the path, which begins with '/'; nullopt if it
// is no such path. Names in paths are in lower case only.
std::optional<std::pair<EdgeName, std::string_view>> parseEdgePath(std::string_view path);

// "https://<job>--<port>.<domain>:<tlsPort>", without the port where it is the usual one.
std::string edgeUrl(const EdgeName& name, std::string_view domain, uint16_t tlsPort);

}  // namespace cay::hub
