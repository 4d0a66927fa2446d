// When something is due that repeats: the five fields of cron, in UTC.
//
// Minute, hour, day of the month, month, day of the week; each a list of *, N, N-M, and any of
// these with /STEP; months and weekdays also by name. 7 is Sunday too. If neither day field begins
// with *, one of the two is enough, as cron has it. Or one of @yearly, @annually, @monthly,
// @weekly, @daily,
// @midnight, @hourly.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace cay {

class Cron {
 public:
  // kInvalid, naming the field, for what is not such a text or never comes (a 30th of February).
  static Result<Cron> parse(std::string_view text);

  // The first time after `ms`, milliseconds since 1970: always a whole minute.
  [[nodiscard]] int64_t next(int64_t ms) const;

 private:
  Cron() = default;
  Result<> readFields(std::string_view text);

  // One bit for each value.
  uint64_t minutes_ = 0;
  uint64_t hours_ = 0;
  uint64_t days_ = 0;
  uint64_t months_ = 0;
  uint64_t weekdays_ = 0;
  bool eitherDay_ = false;  // the 13th or a Friday, not Friday the 13th
};

}  // namespace cay
