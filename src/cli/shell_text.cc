#include "cli/shell_text.h"

#include "base/json.h"
#include "base/text.h"

namespace cay::cli {
namespace {

// Nothing is special between single quotes but these.
std::string quotedFor(Shell shell, std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (shell == Shell::kSh && c == '\'') {
      out += R"('\'')";
    } else if (shell == Shell::kFish && (c == '\'' || c == '\\')) {
      out.append("\\").push_back(c);
    } else {
      out.push_back(c);
    }
  }
  return out + "'";
}

std::string lineOf(Shell shell, const Setting& setting) {
  if (shell == Shell::kFish) {
    if (!setting.value) return "set -e " + setting.name + ";";
    return "set -gx " + setting.name + " " + quotedFor(shell, *setting.value) + ";";
  }
  if (!setting.value) return "unset " + setting.name;
  return "export " + setting.name + "=" + quotedFor(shell, *setting.value);
}

std::string jsonOf(const std::vector<Setting>& settings) {
  json::Object object;
  for (const Setting& setting : settings) {
    object[setting.name] = setting.value ? json::Value(toValidUtf8(*setting.value)) : nullptr;
  }
  return json::serialize(object) + "\n";
}

}  // namespace

std::string shellText(Shell shell, const std::vector<Setting>& settings) {
  if (shell == Shell::kJson) return jsonOf(settings);
  std::string text;
  for (const Setting& setting : settings) text += lineOf(shell, setting) + "\n";
  return text;
}

}  // namespace cay::cli
