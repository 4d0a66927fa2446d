// What `cay serve` is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/uplink.h"

namespace cay::hub {

inline constexpr uint16_t kPort = 7340;
inline constexpr uint16_t kTlsPort = 7343;
inline constexpr char kDomain[] = "cay.localhost";

struct ServeOptions {
  std::string state;            // absolute
  uint16_t port = kPort;        // of the API, on 127.0.0.1; 0: any free one
  uint16_t tlsPort = kTlsPort;  // of exposed ports, and of the API under the domain; likewise
  // IP addresses for the TLS port; loopback is always among them, by itself or in 0.0.0.0 and ::.
  std::vector<std::string> listen = {"127.0.0.1", "::1"};
  std::string domain = kDomain;
  // Files of a certificate for the domain and *.domain, and of its key; empty: those of our own CA.
  std::string tlsCert;
  std::string tlsKey;

  std::string upstream = "https://huggingface.co";  // has what we do not serve
  std::string upstreamTokenFile;                    // empty: without a token
  bool tunnel = true;                               // CONNECT to others

  engine::Outbound network = engine::Outbound::kAuto;
  std::vector<std::string> dns;  // IPv4 addresses; empty: what the machine asks
  std::string flavors;           // a file; empty: that of the state folder, if it is there
  std::string cayHost;           // the program

  uint32_t keepLogsDays = 7;   // ended jobs are forgotten after that,
  uint64_t keepJobs = 10'000;  // or when there are more of them
  bool endJobs = false;        // when we are told to stop; else they go on
  std::string logLevel = "info";
};

}  // namespace cay::hub
