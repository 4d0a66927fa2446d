#include "net/http.h"

#include <algorithm>

#include "base/text.h"

namespace cay::net {
namespace {

std::optional<std::string> decodeComponent(std::string_view raw) {
  std::string text(raw);
  std::ranges::replace(text, '+', ' ');
  return percentDecode(text);
}

}  // namespace

void Fields::add(std::string_view name, std::string_view value) {
  fields_.emplace_back(std::string(name), std::string(value));
}

void Fields::erase(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return equalIgnoreCase(field.name, name); });
}

std::optional<std::string_view> Fields::get(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equalIgnoreCase(field.name, name)) return field.value;
  }
  return std::nullopt;
}

size_t Fields::count(std::string_view name) const {
  return static_cast<size_t>(std::ranges::count_if(
      fields_, [&](const Field& field) { return equalIgnoreCase(field.name, name); }));
}

bool Fields::hasToken(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!equalIgnoreCase(field.name, name)) continue;
    for (std::string_view element : listElements(field.value)) {
      if (equalIgnoreCase(element, token)) return true;
    }
  }
  return false;
}

std::vector<std::string_view> listElements(std::string_view value) {
  std::vector<std::string_view> elements;
  for (;;) {
    const size_t comma = value.find(',');
    const std::string_view element = trim(value.substr(0, comma));
    if (!element.empty()) elements.push_back(element);
    if (comma == std::string_view::npos) return elements;
    value.remove_prefix(comma + 1);
  }
}

Result<Query> Query::parse(std::string_view raw) {
  Query query;
  while (!raw.empty()) {
    const size_t end = raw.find('&');
    const std::string_view pair = raw.substr(0, end);
    raw.remove_prefix(end == std::string_view::npos ? raw.size() : end + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const bool bare = equals == std::string_view::npos;
    auto name = decodeComponent(pair.substr(0, equals));
    auto value = decodeComponent(bare ? std::string_view() : pair.substr(equals + 1));
    if (!name || !value) {
      return fail(Code::kInvalid,
                  "the query string has a broken percent escape in " + quoted(pair));
    }
    query.values_.emplace_back(*std::move(name), *std::move(value));
  }
  return query;
}

std::optional<std::string_view> Query::get(std::string_view name) const {
  for (const Field& field : values_) {
    if (field.name == name) return field.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Query::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Field& field : values_) {
    if (field.name == name) values.emplace_back(field.value);
  }
  return values;
}

Result<std::optional<uint64_t>> Query::getUint(std::string_view name) const {
  const auto text = get(name);
  if (!text) return std::nullopt;
  const auto value = parseUint(*text);
  if (!value) {
    return fail(Code::kInvalid,
                "the parameter " + quoted(name) + " must be a whole number, not " + quoted(*text));
  }
  return value;
}

Result<bool> Query::getFlag(std::string_view name) const {
  const auto text = get(name);
  if (!text || *text == "0" || *text == "false") return false;
  if (*text == "1" || *text == "true") return true;
  return fail(Code::kInvalid,
              "the parameter " + quoted(name) + " must be 0 or 1, not " + quoted(*text));
}

}  // namespace cay::net
