#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/dates.h"
#include "base/json.h"
#include "base/text.h"

namespace cay {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
std::atomic<Level> threshold = Level::kInfo;

std::string now() {
  using namespace std::chrono;
  const auto time = floor<microseconds>(system_clock::now());
  return isoDate(time.time_since_epoch().count(), Fraction::kMillis);
}

}  // namespace

void log(Level level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < threshold.load(std::memory_order_relaxed)) return;
  std::string line = "{\"time\":\"" + now() + "\",\"level\":\"";
  line.append(kNames[static_cast<size_t>(level)]).append("\",\"message\":");
  json::appendString(line, toValidUtf8(message));
  for (const LogField& field : fields) {
    line.push_back(',');
    json::appendString(line, field.key);
    line.push_back(':');
    if (field.quoted) {
      json::appendString(line, toValidUtf8(field.text));
    } else {
      line.append(field.text);
    }
  }
  line.append("}\n");
  // A log that cannot be written must not stop the work it reports.
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void setLogLevel(Level level) {
  threshold.store(level, std::memory_order_relaxed);
}

bool setLogLevel(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] != name) continue;
    setLogLevel(static_cast<Level>(i));
    return true;
  }
  return false;
}

}  // namespace cay
