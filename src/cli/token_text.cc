#include "cli/token_text.h"

#include <algorithm>

#include "base/dates.h"
#include "base/text.h"
#include "cli/table.h"

namespace cay::cli {
namespace {

json::Value dateOrNull(int64_t ms) {
  if (ms == 0) return nullptr;
  return json::Value(isoDate(ms * 1000, Fraction::kMillis));
}

const char* stateOf(const hub::TokenRow& row, int64_t nowMs) {
  if (row.revokedMs != 0) return "revoked";
  return row.expiresMs != 0 && nowMs >= row.expiresMs ? "expired" : "good";
}

std::string ownerOf(const hub::Identities& all, const hub::TokenRow& row) {
  const auto found = std::ranges::find(all.principals, row.principal, &hub::PrincipalRow::id);
  return found == all.principals.end() ? "" : found->name;
}

std::string plainText(const json::Value& value) {
  if (value.is_null()) return "";
  if (!value.is_array()) return json::scalarText(value).value_or("");
  std::string out;
  for (const json::Value& item : value.get_array()) {
    out.append(out.empty() ? "" : ",").append(json::scalarText(item).value_or(""));
  }
  return out;
}

}  // namespace

json::Object tokenJson(const hub::Identities& all, const hub::TokenRow& row, int64_t nowMs) {
  json::Array namespaces;
  for (const std::string& name : row.namespaces) namespaces.emplace_back(toValidUtf8(name));
  return {{"id", row.id},
          {"name", toValidUtf8(row.name)},
          {"role", row.role},
          {"user", toValidUtf8(ownerOf(all, row))},
          {"namespaces", std::move(namespaces)},
          {"hint", row.hint},
          {"state", stateOf(row, nowMs)},
          {"created", dateOrNull(row.createdMs)},
          {"expires", dateOrNull(row.expiresMs)},
          {"used", dateOrNull(row.usedMs)},
          {"revoked", dateOrNull(row.revokedMs)}};
}

std::vector<std::string> tokenCells(const hub::Identities& all, const hub::TokenRow& row,
                                    int64_t nowMs) {
  const json::Object object = tokenJson(all, row, nowMs);
  std::vector<std::string> cells;
  for (const char* field :
       {"id", "name", "role", "user", "namespaces", "hint", "state", "expires", "used"}) {
    cells.push_back(plainText(object.at(field)));
  }
  return cells;
}

std::string fieldLines(const json::Object& object) {
  Table table({"FIELD", "VALUE"});
  for (const auto& [name, value] : object) table.add({std::string(name), plainText(value)});
  return table.text();
}

}  // namespace cay::cli
