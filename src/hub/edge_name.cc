#include "hub/edge_name.h"

#include <algorithm>

#include "base/text.h"

namespace cay::hub {
namespace {

constexpr std::string_view kSeparator = "--";
constexpr std::string_view kPathPrefix = "/x/";
constexpr size_t kMostJobLength = 50;  // of a label of 63, with the longest port
constexpr uint16_t kHttpsPort = 443;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

bool isJobLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// One way to write a number, so that a job has one name.
std::optional<uint16_t> parsePort(std::string_view digits) {
  if (digits.starts_with('0')) return std::nullopt;
  const auto number = parseUint(digits);
  if (!number || *number > UINT16_MAX) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

std::optional<EdgeName> parseLabel(std::string_view label) {
  const size_t at = label.find(kSeparator);
  if (at == 0 || at == std::string_view::npos || at > kMostJobLength) return std::nullopt;
  const std::string_view job = label.substr(0, at);
  const auto port = parsePort(label.substr(at + kSeparator.size()));
  if (!port || !std::ranges::all_of(job, isJobLetter)) return std::nullopt;
  return EdgeName{.job = std::string(job), .port = *port};
}

}  // namespace

std::optional<EdgeName> parseEdgeHost(std::string_view host, std::string_view domain) {
  if (const size_t colon = host.find(':'); colon != std::string_view::npos) {
    if (!parsePort(host.substr(colon + 1))) return std::nullopt;
    host = host.substr(0, colon);
  }
  if (host.ends_with('.')) host.remove_suffix(1);  // the same name, written in full
  const std::string name = lower(host);
  const std::string suffix = "." + lower(domain);
  if (!name.ends_with(suffix)) return std::nullopt;
  return parseLabel(std::string_view(name).substr(0, name.size() - suffix.size()));
}

std::optional<std::pair<EdgeName, std::string_view>> parseEdgePath(std::string_view path) {
  if (!path.starts_with(kPathPrefix)) return std::nullopt;
  path.remove_prefix(kPathPrefix.size());
  const size_t end = path.find('/');
  if (end == std::string_view::npos) return std::nullopt;
  auto name = parseLabel(path.substr(0, end));
  if (!name) return std::nullopt;
  return std::pair(*std::move(name), path.substr(end));
}

std::string edgeUrl(const EdgeName& name, std::string_view domain, uint16_t tlsPort) {
  std::string url = "https://" + name.job;
  url.append(kSeparator).append(std::to_string(name.port)).append(".").append(domain);
  if (tlsPort != kHttpsPort) url.append(":").append(std::to_string(tlsPort));
  return url;
}

}  // namespace cay::hub
