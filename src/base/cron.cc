#include "base/cron.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.h"

namespace cay {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::sys_days;
using std::chrono::sys_time;
using std::chrono::year_month_day;

// The calendar repeats itself after these, weekdays included.
constexpr int kCycleDays = 146'097;

constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kWeekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Shape {
  std::string_view name;
  unsigned low;
  unsigned high;
  std::span<const std::string_view> names;  // of the values from `low` on
};
constexpr Shape kShapes[] = {
    {"minute", 0, 59, {}},     {"hour", 0, 23, {}},          {"day of the month", 1, 31, {}},
    {"month", 1, 12, kMonths}, {"weekday", 0, 7, kWeekdays},
};

struct Nickname {
  std::string_view name;
  std::string_view fields;
};
constexpr Nickname kNicknames[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

constexpr bool has(uint64_t set, unsigned value) {
  return (set >> value & 1) != 0;
}

std::optional<unsigned> valueOf(std::string_view text, const Shape& shape) {
  const auto named = std::ranges::find_if(
      shape.names, [&](std::string_view name) { return equalIgnoreCase(name, text); });
  if (named != shape.names.end()) {
    return shape.low + static_cast<unsigned>(named - shape.names.begin());
  }
  const auto number = parseUint(text);
  if (!number || *number < shape.low || *number > shape.high) return std::nullopt;
  return static_cast<unsigned>(*number);
}

// One element of a list, as bits; nullopt if it is none.
std::optional<uint64_t> elementOf(std::string_view text, const Shape& shape) {
  const size_t slash = text.find('/');
  const std::string_view range = text.substr(0, slash);
  unsigned first = shape.low;
  unsigned last = shape.high;
  if (range != "*") {
    const size_t dash = range.find('-');
    const auto low = valueOf(range.substr(0, dash), shape);
    if (!low) return std::nullopt;
    first = *low;
    if (dash != std::string_view::npos) {
      const auto high = valueOf(range.substr(dash + 1), shape);
      if (!high || *high < first) return std::nullopt;
      last = *high;
    } else if (slash == std::string_view::npos) {
      last = first;
    }
  }
  uint64_t step = 1;
  if (slash != std::string_view::npos) {
    const auto given = parseUint(text.substr(slash + 1));
    if (!given || *given == 0 || *given > shape.high) return std::nullopt;
    step = *given;
  }
  uint64_t set = 0;
  for (uint64_t value = first; value <= last; value += step) set |= uint64_t{1} << value;
  return set;
}

Result<uint64_t> fieldOf(std::string_view text, const Shape& shape) {
  uint64_t set = 0;
  for (const std::string_view element : split(text, ',')) {
    const auto values = elementOf(element, shape);
    if (!values) {
      return fail(Code::kInvalid, "the " + std::string(shape.name) + " field of a schedule, " +
                                      quoted(text) + ", must be a list of *, numbers from " +
                                      std::to_string(shape.low) + " to " +
                                      std::to_string(shape.high) + ", ranges and steps");
    }
    set |= *values;
  }
  return set;
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  std::string_view fields = text;
  if (trim(text).starts_with('@')) {
    const auto nickname = std::ranges::find(kNicknames, trim(text), &Nickname::name);
    if (nickname == std::end(kNicknames)) {
      return fail(Code::kInvalid, "the schedule " + quoted(text) +
                                      " is unknown: it can be @yearly, @monthly, @weekly, @daily, "
                                      "@hourly or five fields");
    }
    fields = nickname->fields;
  }
  Cron cron;
  CAY_TRY(cron.readFields(fields));
  if (cron.next(0) == 0) {
    return fail(Code::kInvalid, "the schedule " + quoted(text) + " names a day that never comes");
  }
  return cron;
}

Result<> Cron::readFields(std::string_view text) {
  const auto fields = words(text);
  if (fields.size() != std::size(kShapes)) {
    return fail(
        Code::kInvalid,
        "a schedule has five fields (minute, hour, day of the month, month, weekday), not " +
            std::to_string(fields.size()) + ": " + quoted(text));
  }
  uint64_t* const sets[] = {&minutes_, &hours_, &days_, &months_, &weekdays_};
  for (size_t i = 0; i < fields.size(); ++i) {
    CAY_ASSIGN(*sets[i], fieldOf(fields[i], kShapes[i]));
  }
  if (has(weekdays_, 7)) weekdays_ |= 1;
  eitherDay_ = !fields[2].starts_with('*') && !fields[4].starts_with('*');
  return {};
}

int64_t Cron::next(int64_t ms) const {
  // Far enough in both directions, and no date of the search leaves the calendar.
  constexpr int64_t kMost = int64_t{253'402'300'799} * 1000;
  const sys_time<milliseconds> after(milliseconds(std::clamp<int64_t>(ms, -kMost, kMost)));
  const auto from = std::chrono::floor<std::chrono::minutes>(after) + std::chrono::minutes(1);
  const sys_days today = std::chrono::floor<days>(from);
  auto earliest = static_cast<unsigned>((from - today).count());
  for (sys_days day = today; day <= today + days(kCycleDays); day += days(1), earliest = 0) {
    const year_month_day date(day);
    if (!has(months_, static_cast<unsigned>(date.month()))) continue;
    const bool byDate = has(days_, static_cast<unsigned>(date.day()));
    const bool byWeekday = has(weekdays_, std::chrono::weekday(day).c_encoding());
    if (eitherDay_ ? !byDate && !byWeekday : !byDate || !byWeekday) continue;
    for (unsigned hour = earliest / 60; hour < 24; ++hour) {
      if (!has(hours_, hour)) continue;
      const unsigned past = hour == earliest / 60 ? earliest % 60 : 0;
      const uint64_t left = minutes_ >> past;
      if (left == 0) continue;
      const auto time = day + std::chrono::hours(hour) +
                        std::chrono::minutes(past + static_cast<unsigned>(std::countr_zero(left)));
      return milliseconds(time.time_since_epoch()).count();
    }
  }
  return 0;
}

}  // namespace cay
