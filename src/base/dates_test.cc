#include "base/dates.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace cay {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(Dates, AreWrittenInUtcWithTheirFraction) {
  EXPECT_EQ(isoDate(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(isoDate(1), "1970-01-01T00:00:00.000001Z");
  EXPECT_EQ(isoDate(-1), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(isoDate(1'999, Fraction::kMillis), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(isoDate(951'782'400 * kSecond), "2000-02-29T00:00:00.000000Z");
  EXPECT_EQ(isoDate(4'102'444'799 * kSecond + 999'999), "2099-12-31T23:59:59.999999Z");
}

TEST(Dates, NoNumberMakesAYearOfFiveDigits) {
  EXPECT_EQ(isoDate(INT64_MAX), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(isoDate(INT64_MIN), "0000-01-01T00:00:00.000000Z");
}

TEST(Dates, AreReadWithAnyUsualFraction) {
  EXPECT_EQ(parseIsoDate("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parseIsoDate("1970-01-01T00:00:01.5Z"), 1'500'000);
  EXPECT_EQ(parseIsoDate("1970-01-01T00:00:00.000001Z"), 1);
  EXPECT_EQ(parseIsoDate("1970-01-01T00:00:00.000001999Z"), 1);
  EXPECT_EQ(parseIsoDate("2000-02-29T00:00:00.000Z"), 951'782'400 * kSecond);
  EXPECT_EQ(parseIsoDate("2025-07-22T16:06:25.079000Z"), 1'753'200'385'079'000);
}

TEST(Dates, WhatIsWrittenIsReadBack) {
  for (const int64_t time : {INT64_C(0), INT64_C(1), INT64_C(-1), INT64_C(951'782'399'999'999),
                             INT64_C(1'794'787'200'123'456)}) {
    EXPECT_EQ(parseIsoDate(isoDate(time)), time);
  }
}

TEST(Dates, EverythingElseIsNoDate) {
  for (const char* text : {"",
                           "Z",
                           "2026-01-01",
                           "2026-01-01T00:00:00",
                           "2026-01-01T00:00:00+00:00",
                           "2026-01-01t00:00:00Z",
                           "2026-01-01 00:00:00Z",
                           "2026-01-01T00:00:00z",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-00T00:00:00Z",
                           "2026-01-32T00:00:00Z",
                           "2026-01-01T24:00:00Z",
                           "2026-01-01T00:60:00Z",
                           "2026-01-01T00:00:60Z",
                           "2026-01-01T00:00:00.Z",
                           "2026-01-01T00:00:00.0000000001Z",
                           "2026-01-01T00:00:00.1xZ",
                           "2026-01-01T00:00:00.1Z ",
                           "2026-01-01T00:00:00ZZ",
                           "2026-01-01T00:00:00Z.1Z",
                           "+026-01-01T00:00:00Z",
                           "2026-1-1T00:00:00Z",
                           "12026-01-01T00:00:00Z",
                           "2026-01-01T-1:00:00Z",
                           "2026-01-01T00:00:0.0Z"}) {
    EXPECT_FALSE(parseIsoDate(text)) << text;
  }
}

}  // namespace
}  // namespace cay
