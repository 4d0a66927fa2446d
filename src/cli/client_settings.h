// What the environment of a client must be so that it finds the hub. Pure, but for the question
// whether a name resolves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/shell_text.h"

namespace cay::cli {

struct ClientFacts {
  std::string api;     // "http://127.0.0.1:7340"
  std::string domain;  // of exposed ports
  std::string userToken;
  // Where names below the domain do not resolve: the token with which the hub lets a client
  // through. Empty: they do.
  std::string proxyToken;
  // One of them, or none: for SSL_CERT_FILE, for SSL_CERT_DIR.
  std::string bundle;
  std::string hashedFolder;
  // As they are now.
  bool hasProxy = false;  // in any of the variables that name one
  std::string noProxy;
};

std::vector<Setting> clientSettings(const ClientFacts& facts);

// The entries of `current` that do not keep a client from going through a proxy to names below
// `domain`, and then `more`. An entry stands for all names that end in it.
std::string noProxyWithout(std::string_view current, std::string_view domain,
                           std::string_view more);

// Whether programs on this machine find the names of exposed ports: on this machine, if the domain
// is one below localhost. May ask the network.
bool namesResolve(const std::string& domain);

}  // namespace cay::cli
