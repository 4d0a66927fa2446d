#include "host/body_fields.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace cay::host {
namespace {

constexpr size_t kShownBytes = 80;

std::string shortNumber(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return std::to_string(whole);
  return json::serialize(json::Value(value));
}

}  // namespace

std::unexpected<Error> wrong(std::string_view field, std::string_view what) {
  return fail(Code::kInvalid, "'" + std::string(field) + "' " + std::string(what));
}

std::unexpected<Error> wrongValue(std::string_view field, std::string_view mustBe,
                                  const json::Value& value) {
  std::string shown = json::serialize(value);
  if (shown.size() > kShownBytes) shown.replace(kShownBytes, std::string::npos, "…");
  return wrong(field, "must be " + std::string(mustBe) + ", not " + shown);
}

Result<json::Object> bodyObject(std::string_view text, bool mayBeEmpty) {
  if (mayBeEmpty && trim(text).empty()) return json::Object();
  CAY_ASSIGN(json::Value parsed, json::parse(text));
  if (!parsed.is_object()) return fail(Code::kInvalid, "the request body must be a JSON object");
  return std::move(parsed.get_object());
}

const json::Value* field(const json::Object& body, std::string_view name) {
  const json::Value* value = body.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::string> plainText(const json::Value& value, std::string_view name) {
  if (!value.is_string()) return wrong(name, "must be a string");
  std::string text(value.get_string());
  if (text.contains('\0')) return wrong(name, "must not contain a NUL character");
  return text;
}

Result<std::optional<double>> number(const json::Object& body, std::string_view name, double low,
                                     double high, Numbers kind) {
  const json::Value* value = field(body, name);
  if (value == nullptr) return std::nullopt;
  const double given = value->is_number() ? value->to_number<double>() : NAN;
  const bool whole = kind == Numbers::kAny || given == std::trunc(given);
  if (std::isfinite(given) && whole && given >= low && given <= high) return given;
  return wrongValue(name,
                    std::string(kind == Numbers::kWhole ? "a whole number" : "a number") +
                        " from " + shortNumber(low) + " to " + shortNumber(high),
                    *value);
}

Result<> readEnvironment(const json::Object& body, std::vector<std::string>& env) {
  const json::Value* given = field(body, "env");
  if (given == nullptr) return {};
  if (!given->is_object()) return wrong("env", "must be an object of names and values");
  for (const auto& [key, value] : given->get_object()) {
    const std::string name(key);
    if (name.empty() || name.contains('=') || name.contains('\0')) {
      return wrong("env", "has a name that is empty or holds '=' or NUL: " + quoted(name));
    }
    std::erase_if(env, [&](const std::string& entry) {
      return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
    });
    if (value.is_null()) continue;  // unset
    const auto text = json::scalarText(value);
    if (!text)
      return wrong("env", "value of " + quoted(name) + " must be a string, number or boolean");
    if (text->contains('\0'))
      return wrong("env", "value of " + quoted(name) + " contains a NUL character");
    env.push_back(name + "=" + *text);
  }
  return {};
}

}  // namespace cay::host
