#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <ctime>

#include "base/json.h"
#include "base/text.h"

namespace cay {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
std::atomic<Level> threshold = Level::kInfo;

std::string now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  tm parts{};
  ::gmtime_r(&time.tv_sec, &parts);
  char text[40];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string millis = std::to_string(time.tv_nsec / 1'000'000);
  millis.insert(0, 3 - millis.size(), '0');
  return std::string(text, length) + "." + millis + "Z";
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
