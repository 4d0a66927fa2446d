#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/json.h"
#include "base/text.h"

namespace cay {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
std::atomic<Level> threshold = Level::kInfo;

void appendPadded(std::string& out, int64_t number, size_t digits) {
  const std::string text = std::to_string(number);
  out.append(digits > text.size() ? digits - text.size() : 0, '0').append(text);
}

// Without gmtime and strftime, which bring time zones and locales into a static program.
std::string now() {
  using namespace std::chrono;
  const auto time = floor<milliseconds>(system_clock::now());
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  std::string out;
  appendPadded(out, static_cast<int>(date.year()), 4);
  appendPadded(out.append("-"), static_cast<unsigned>(date.month()), 2);
  appendPadded(out.append("-"), static_cast<unsigned>(date.day()), 2);
  appendPadded(out.append("T"), clock.hours().count(), 2);
  appendPadded(out.append(":"), clock.minutes().count(), 2);
  appendPadded(out.append(":"), clock.seconds().count(), 2);
  appendPadded(out.append("."), clock.subseconds().count(), 3);
  return out.append("Z");
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
