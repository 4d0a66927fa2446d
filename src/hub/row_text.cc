#include "hub/row_text.h"

#include "base/json.h"

namespace cay::hub {

std::unexpected<Error> brokenRow(std::string_view column) {
  return fail(Code::kInternal,
              "the hub's database: a row is broken in its column " + std::string(column));
}

std::string textsText(const std::vector<std::string>& texts) {
  return json::serialize(json::Array(texts.begin(), texts.end()));
}

Result<std::vector<std::string>> parseTexts(std::string_view text, std::string_view column) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_array()) return brokenRow(column);
  std::vector<std::string> texts;
  for (const json::Value& value : parsed->get_array()) {
    if (!value.is_string()) return brokenRow(column);
    texts.emplace_back(value.get_string());
  }
  return texts;
}

std::string pairsText(const engine::Pairs& pairs) {
  json::Object object;
  for (const auto& [name, value] : pairs) object.insert_or_assign(name, value);
  return json::serialize(object);
}

Result<engine::Pairs> parsePairs(std::string_view text, std::string_view column) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return brokenRow(column);
  engine::Pairs pairs;
  for (const auto& [name, value] : parsed->get_object()) {
    if (!value.is_string()) return brokenRow(column);
    pairs.emplace_back(name, value.get_string());
  }
  return pairs;
}

}  // namespace cay::hub
