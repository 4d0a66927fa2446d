// The program's log: one JSON object per line on stderr. Library code returns errors instead of
// logging them; what is logged holds no secret and no command text.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace cay {

enum class Level { kDebug, kInfo, kWarn, kError };

struct LogField {
  LogField(std::string_view key, std::string_view value) : key(key), text(value), quoted(true) {}
  LogField(std::string_view key, const char* value) : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value)
      : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, int64_t value)
      : key(key), text(std::to_string(value)), quoted(false) {}

  std::string_view key;
  std::string text;
  bool quoted;
};

// Safe from every thread: a line goes out in one write.
void log(Level level, std::string_view message, std::initializer_list<LogField> fields = {});

void setLogLevel(Level level);
// False for a name that is no level ("debug", "info", "warn", "error").
bool setLogLevel(std::string_view name);

}  // namespace cay
