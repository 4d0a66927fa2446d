#include "net/passage_fields.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace cay::net {
namespace {

using Names = std::vector<std::string_view>;

bool isOneOf(std::string_view name, const Names& names) {
  return std::ranges::any_of(names,
                             [&](std::string_view other) { return equalIgnoreCase(name, other); });
}

// Concern one connection only, whatever its Connection field says (RFC 9110, 7.6.1).
const Names& hopByHop() {
  static const Names names = {
      "connection", "keep-alive",        "proxy-connection", "proxy-authenticate",
      "te",         "transfer-encoding", "upgrade",          "expect"};
  return names;
}

// What the Connection fields name besides. Host must not be taken away that way.
Names namedByConnection(const Fields& fields) {
  Names names;
  for (const Field& field : fields) {
    if (!equalIgnoreCase(field.name, "connection")) continue;
    for (const std::string_view name : listElements(field.value)) {
      if (!equalIgnoreCase(name, "host")) names.push_back(name);
    }
  }
  return names;
}

Fields passedOn(const Fields& fields) {
  const Names named = namedByConnection(fields);
  Fields passed;
  for (const Field& field : fields) {
    if (isOneOf(field.name, hopByHop()) || isOneOf(field.name, named)) continue;
    passed.add(field.name, field.value);
  }
  return passed;
}

void copy(std::string_view name, const Fields& from, Fields& to) {
  for (const Field& field : from) {
    if (equalIgnoreCase(field.name, name)) to.add(field.name, field.value);
  }
}

}  // namespace

bool wantsUpgrade(const RequestHead& head) {
  const bool hasBody = head.framing == Framing::kChunked ||
                       (head.framing == Framing::kLength && head.contentLength > 0);
  return head.minorVersion > 0 && !hasBody && head.fields.count("upgrade") > 0 &&
         head.fields.hasToken("connection", "upgrade");
}

Fields innerRequestFields(const RequestHead& head, const Onward& onward, bool upgrade) {
  Fields fields = passedOn(head.fields);
  for (const std::string& name : onward.withheld) fields.erase(name);
  fields.erase("content-length");
  if (fields.count("host") == 0) fields.add("Host", onward.host);
  for (const Field& field : onward.added) fields.add(field.name, field.value);
  if (upgrade) copy("upgrade", head.fields, fields);
  fields.add("Connection", upgrade ? "Upgrade" : "close");
  return fields;
}

Fields innerTrailers(const Fields& trailers, const Onward& onward) {
  Fields passed = trailers;
  for (const std::string& name : onward.withheld) passed.erase(name);
  return passed;
}

Fields outerResponseFields(const ResponseHead& head, Framing framing) {
  constexpr int kSwitching = 101;
  constexpr int kNoContent = 204;
  constexpr int kUpgradeRequired = 426;
  Fields fields = passedOn(head.fields);
  if (head.status == kSwitching || head.status == kUpgradeRequired) {
    copy("upgrade", head.fields, fields);
  }
  // With kNone it describes the body that GET would have given.
  const bool lengthIsTrue =
      framing == Framing::kLength ||
      (framing == Framing::kNone && head.status != kNoContent && head.status != kSwitching);
  if (!lengthIsTrue) fields.erase("content-length");
  return fields;
}

}  // namespace cay::net
