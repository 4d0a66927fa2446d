#include "base/dates.h"

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace cay {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::microseconds;
using std::chrono::sys_days;
using std::chrono::sys_time;
using std::chrono::year_month_day;

constexpr sys_time<microseconds> kFirst = sys_days(std::chrono::year(0) / 1 / 1);
constexpr sys_time<microseconds> kLast =
    sys_days(std::chrono::year(10'000) / 1 / 1) - microseconds(1);

void appendPadded(std::string& out, int64_t number, size_t digits) {
  const std::string text = std::to_string(number);
  out.append(digits > text.size() ? digits - text.size() : 0, '0').append(text);
}

// Takes exactly `digits` digits, and then `mark`, off the front.
std::optional<int> takeNumber(std::string_view& text, size_t digits, char mark) {
  if (text.size() <= digits || text[digits] != mark) return std::nullopt;
  const auto number = parseUint(text.substr(0, digits));
  if (!number) return std::nullopt;
  text.remove_prefix(digits + 1);
  return static_cast<int>(*number);
}

// "000001" as microseconds.
std::optional<int64_t> fractionMicros(std::string_view digits) {
  if (digits.empty() || digits.size() > 9 || !parseUint(digits)) return std::nullopt;
  std::string whole(digits.substr(0, 6));
  whole.append(6 - whole.size(), '0');
  return static_cast<int64_t>(*parseUint(whole));
}

}  // namespace

std::string isoDate(int64_t microseconds, Fraction fraction) {
  const auto time = std::clamp(sys_time(std::chrono::microseconds(microseconds)), kFirst, kLast);
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string out;
  appendPadded(out, static_cast<int>(date.year()), 4);
  appendPadded(out.append("-"), static_cast<unsigned>(date.month()), 2);
  appendPadded(out.append("-"), static_cast<unsigned>(date.day()), 2);
  appendPadded(out.append("T"), clock.hours().count(), 2);
  appendPadded(out.append(":"), clock.minutes().count(), 2);
  appendPadded(out.append(":"), clock.seconds().count(), 2);
  out.append(".");
  if (fraction == Fraction::kMillis) {
    appendPadded(out, clock.subseconds().count() / 1000, 3);
  } else {
    appendPadded(out, clock.subseconds().count(), 6);
  }
  return out.append("Z");
}

std::optional<int64_t> parseIsoDate(std::string_view text) {
  if (!text.ends_with('Z')) return std::nullopt;
  const auto year = takeNumber(text, 4, '-');
  const auto month = year ? takeNumber(text, 2, '-') : std::nullopt;
  const auto day = month ? takeNumber(text, 2, 'T') : std::nullopt;
  const auto hour = day ? takeNumber(text, 2, ':') : std::nullopt;
  const auto minute = hour ? takeNumber(text, 2, ':') : std::nullopt;
  if (!minute) return std::nullopt;
  const char mark = text.contains('.') ? '.' : 'Z';
  const auto second = takeNumber(text, 2, mark);
  if (!second) return std::nullopt;
  int64_t micros = 0;
  if (mark == '.') {
    const auto fraction = fractionMicros(text.substr(0, text.size() - 1));
    if (!fraction) return std::nullopt;
    micros = *fraction;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  const year_month_day date = std::chrono::year(*year) / *month / *day;
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) return std::nullopt;
  const sys_time<microseconds> time = sys_days(date) + std::chrono::hours(*hour) +
                                      std::chrono::minutes(*minute) + std::chrono::seconds(*second);
  return time.time_since_epoch().count() + micros;
}

}  // namespace cay
