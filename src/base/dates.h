// Dates as clients read them: ISO 8601 in UTC, "2026-01-01T00:00:00.000001Z".
//
// Without gmtime and strftime, which bring time zones and locales into a static program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cay {

enum class Fraction : uint8_t { kMillis, kMicros };

// Of a wall clock's microseconds since 1970; always 4 digits of year, so what lies before the year
// 0 or after 9999 is moved to that end.
std::string isoDate(int64_t microseconds, Fraction fraction = Fraction::kMicros);

// Microseconds since 1970 of a date that ends in Z, with 0 to 9 digits of a fraction; what is finer
// than a microsecond is dropped. nullopt for everything else, days that no calendar has included.
std::optional<int64_t> parseIsoDate(std::string_view text);

}  // namespace cay
