#include "layers/image_name.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "layers/digest.h"

namespace cay::layers {
namespace {

constexpr char kDefaultRegistry[] = "docker.io";
constexpr size_t kMaxName = 255;
constexpr size_t kMaxTag = 128;

constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kAlnum =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool consistsOf(std::string_view text, std::string_view allowed) {
  return text.find_first_not_of(allowed) == std::string_view::npos;
}

// Letters and digits, with a separator of the list between them: ".", "_", "__" or any run of "-".
bool isPathPart(std::string_view part) {
  if (part.empty() || !consistsOf(part.substr(0, 1), kLower)) return false;
  while (!part.empty()) {
    const size_t word = std::min(part.find_first_not_of(kLower), part.size());
    part.remove_prefix(word);
    if (part.empty()) return true;
    const size_t length = std::min(part.find_first_of(kLower), part.size());
    const std::string_view separator = part.substr(0, length);
    if (separator != "." && separator != "_" && separator != "__" && !consistsOf(separator, "-")) {
      return false;
    }
    part.remove_prefix(length);
  }
  return false;  // ends in a separator
}

bool isHostName(std::string_view host) {
  if (host.starts_with('[')) {
    return host.ends_with(']') && host.size() > 2 &&
           consistsOf(host.substr(1, host.size() - 2), "0123456789abcdefABCDEF:");
  }
  return std::ranges::all_of(split(host, '.'), [](std::string_view label) {
    return !label.empty() && consistsOf(label, std::string(kAlnum) + "-") &&
           !label.starts_with('-') && !label.ends_with('-');
  });
}

bool isRegistry(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) return isHostName(text);
  const auto port = parseUint(text.substr(colon + 1));
  return port && *port <= 65535 && isHostName(text.substr(0, colon));
}

bool isTag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kMaxTag && consistsOf(tag, std::string(kAlnum) + "_.-") &&
         consistsOf(tag.substr(0, 1), std::string(kAlnum) + "_");
}

// What stands before the first slash is a registry if it could not be part of a path.
bool namesRegistry(std::string_view first) {
  const auto isUpper = [](unsigned char c) { return std::isupper(c) != 0; };
  return first == "localhost" || first.find_first_of(".:") != std::string_view::npos ||
         std::ranges::any_of(first, isUpper);
}

}  // namespace

std::string ImageName::text() const {
  const std::string name = registry + "/" + repository;
  return digest.empty() ? name + ":" + tag : name + "@" + digest;
}

Result<ImageName> parseImageName(std::string_view text) {
  const auto bad = [&](const char* why) {
    return fail(Code::kInvalid, "not the name of an image: " + quoted(text) + ": " + why);
  };
  ImageName name;
  std::string_view rest = text;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    name.digest = rest.substr(at + 1);
    if (!isDigest(name.digest)) return bad("its digest is not sha256: and 64 hex digits");
    rest = rest.substr(0, at);
  }
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos && namesRegistry(rest.substr(0, slash))) {
    name.registry = rest.substr(0, slash);
    if (!isRegistry(name.registry)) return bad("its registry is no host name");
    rest.remove_prefix(slash + 1);
  }
  if (const size_t colon = rest.rfind(':');
      colon != std::string_view::npos && rest.find('/', colon) == std::string_view::npos) {
    name.tag = rest.substr(colon + 1);
    if (!isTag(name.tag)) return bad("its tag may have letters, digits, '_', '.' and '-'");
    rest = rest.substr(0, colon);
  }
  if (!std::ranges::all_of(split(rest, '/'), isPathPart)) {
    return bad("it may have lower-case letters and digits, with '.', '_' or '-' between them");
  }
  if (name.registry.empty() || name.registry == "index.docker.io") name.registry = kDefaultRegistry;
  const bool isShort = name.registry == kDefaultRegistry && !rest.contains('/');
  name.repository = (isShort ? "library/" : "") + std::string(rest);
  if (name.repository.size() + name.registry.size() >= kMaxName) return bad("it is too long");
  if (!name.digest.empty()) {
    name.tag.clear();
  } else if (name.tag.empty()) {
    name.tag = "latest";
  }
  return name;
}

}  // namespace cay::layers
