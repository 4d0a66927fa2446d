// Names of jobs' ports from anybody: a Host field, a server name of TLS, a path.
//
// Holds: what is accepted has one meaning, which is written in the input letter by letter and leads
// back to itself; case, a port and a final dot change nothing; the rest of a path is its end.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hub/edge_name.h"

namespace {

using cay::hub::EdgeName;
using cay::hub::edgeUrl;
using cay::hub::parseEdgeHost;
using cay::hub::parseEdgePath;

constexpr std::array<std::string_view, 3> kDomains = {"cay.localhost", "a--1.b",
                                                      "Jobs.Example.ORG"};

void require(bool holds) {
  if (!holds) std::abort();
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return c < 0x80 ? std::tolower(c) : c; });
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return c < 0x80 ? std::toupper(c) : c; });
  return out;
}

std::string labelOf(const EdgeName& name) {
  return name.job + "--" + std::to_string(name.port);
}

void checkName(const EdgeName& name) {
  require(name.port > 0 && !name.job.empty());
  require(labelOf(name).size() <= 63);
  require(std::ranges::all_of(
      name.job, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }));
}

void checkHost(std::string_view host, std::string_view domain) {
  const auto name = parseEdgeHost(host, domain);
  require(parseEdgeHost(upper(host), domain) == name);
  require(parseEdgeHost(host, lower(domain)) == name);
  if (!name) return;
  checkName(*name);
  const std::string whole = labelOf(*name) + "." + lower(domain);
  const std::string shown = lower(host);
  require(shown.starts_with(whole));
  const std::string_view rest = std::string_view(shown).substr(whole.size());
  require(rest.empty() || rest.front() == '.' || rest.front() == ':');
  require(parseEdgeHost(whole, domain) == name && parseEdgeHost(whole + ".:443", domain) == name);
  for (const uint16_t port : {443, 7343}) {
    const std::string url = edgeUrl(*name, domain, port);
    require(parseEdgeHost(std::string_view(url).substr(8), domain) == name);
  }
}

void checkPath(std::string_view path) {
  const auto parsed = parseEdgePath(path);
  if (!parsed) return;
  const auto& [name, rest] = *parsed;
  checkName(name);
  require(rest.starts_with('/') && rest.data() + rest.size() == path.data() + path.size());
  require("/x/" + labelOf(name) + std::string(rest) == path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string_view domain : kDomains) {
    checkHost(bytes, domain);
    checkHost(std::string(bytes) + "." + std::string(domain), domain);
  }
  checkPath(bytes);
  checkPath("/x/" + std::string(bytes));
  return 0;
}
