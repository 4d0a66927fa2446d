#include "base/cron.h"

#include <gtest/gtest.h>

#include <string>

#include "base/dates.h"

namespace cay {
namespace {

struct Case {
  const char* schedule;
  const char* after;
  const char* next;
};

std::string nextOf(const Cron& cron, const char* after) {
  const int64_t next = cron.next(parseIsoDate(after).value() / 1000);
  return isoDate(next * 1000, Fraction::kMillis);
}

class CronTable : public ::testing::TestWithParam<Case> {};

TEST_P(CronTable, GivesTheNextTime) {
  const Case& at = GetParam();
  const auto cron = Cron::parse(at.schedule);
  ASSERT_TRUE(cron) << cron.error().message;
  EXPECT_EQ(nextOf(*cron, at.after), at.next) << at.schedule << " after " << at.after;
}

INSTANTIATE_TEST_SUITE_P(
    Cron, CronTable,
    ::testing::Values(
        Case{"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00.000Z"},
        Case{"* * * * *", "2026-01-01T00:00:00.001Z", "2026-01-01T00:01:00.000Z"},
        Case{"* * * * *", "2026-01-01T00:00:59.999Z", "2026-01-01T00:01:00.000Z"},
        Case{"* * * * *", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"},
        Case{"0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00.000Z"},
        Case{"0 0 * * *", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00.000Z"},
        Case{"30 4 1,15 * *", "2026-01-01T04:30:00Z", "2026-01-15T04:30:00.000Z"},
        Case{"*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00.000Z"},
        Case{"5-20/5 9-17 * * *", "2026-01-01T17:20:00Z", "2026-01-02T09:05:00.000Z"},
        Case{"10/20 * * * *", "2026-01-01T00:30:00Z", "2026-01-01T00:50:00.000Z"},
        Case{"59 23 31 12 *", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00.000Z"},
        // Names, in any case.
        Case{"0 0 * JAN mon", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00.000Z"},
        Case{"0 0 * feb-Mar *", "2026-01-10T00:00:00Z", "2026-02-01T00:00:00.000Z"},
        Case{"0 9 * * mon-fri", "2026-11-13T09:00:00Z", "2026-11-16T09:00:00.000Z"},
        // Sunday is 0 and 7.
        Case{"0 0 * * 7", "2026-11-14T00:00:00Z", "2026-11-15T00:00:00.000Z"},
        Case{"0 0 * * 0", "2026-11-14T00:00:00Z", "2026-11-15T00:00:00.000Z"},
        Case{"0 0 * * 5-7", "2026-11-14T00:00:00Z", "2026-11-15T00:00:00.000Z"},
        // Both days given: either will do; one that begins with * restricts the other.
        Case{"0 0 13 * 5", "2026-11-14T00:00:00Z", "2026-11-20T00:00:00.000Z"},
        Case{"0 0 13 * 5", "2026-12-12T00:00:00Z", "2026-12-13T00:00:00.000Z"},
        Case{"0 0 */10 * 5", "2026-11-14T00:00:00Z", "2026-12-11T00:00:00.000Z"},
        // Months of different lengths, leap years, the year 2100 that is none.
        Case{"0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00.000Z"},
        Case{"0 0 30 * *", "2026-01-30T00:00:00Z", "2026-03-30T00:00:00.000Z"},
        Case{"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00.000Z"},
        Case{"0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00.000Z"},
        Case{"0 0 29 2 *", "1996-02-29T00:00:00Z", "2000-02-29T00:00:00.000Z"},
        Case{"0 0 29 2 */7", "2096-02-29T00:00:00Z", "2128-02-29T00:00:00.000Z"},
        Case{"0 0 31 2,4,6 5", "2026-01-01T00:00:00Z", "2026-02-06T00:00:00.000Z"},
        Case{"@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z"},
        Case{"@annually", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z"},
        Case{"@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00.000Z"},
        Case{"@weekly", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00.000Z"},
        Case{"@daily", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00.000Z"},
        Case{"@midnight", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00.000Z"},
        Case{" @hourly ", "2026-01-01T12:00:00Z", "2026-01-01T13:00:00.000Z"},
        Case{"  0\t12 *  * * ", "2026-01-01T12:00:00Z", "2026-01-02T12:00:00.000Z"}));

TEST(Cron, EveryResultIsLaterAndFollowsFromItself) {
  for (const char* text : {"* * * * *", "7 */5 * * *", "0 0 1,31 * 3", "*/13 3-9/2 */3 * *"}) {
    const auto cron = Cron::parse(text);
    ASSERT_TRUE(cron);
    int64_t time = 1'767'225'600'000;
    for (int i = 0; i < 1000; ++i) {
      const int64_t next = cron->next(time);
      ASSERT_GT(next, time);
      ASSERT_EQ(next % 60'000, 0);
      ASSERT_EQ(cron->next(next - 1), next) << "nothing lies between";
      time = next;
    }
  }
}

TEST(Cron, AbsurdTimesDoNotOverflow) {
  const auto cron = Cron::parse("@daily");
  ASSERT_TRUE(cron);
  EXPECT_GT(cron->next(INT64_MAX), 0);
  EXPECT_LT(cron->next(INT64_MIN), 0);
}

TEST(Cron, OtherTextsAreRefused) {
  for (const char* text : {"",
                           "*",
                           "* * * *",
                           "* * * * * *",
                           "60 * * * *",
                           "* 24 * * *",
                           "* * 0 * *",
                           "* * 32 * *",
                           "* * * 0 *",
                           "* * * 13 *",
                           "* * * * 8",
                           "-1 * * * *",
                           "1- * * * *",
                           "5-1 * * * *",
                           "*/0 * * * *",
                           "*/-1 * * * *",
                           "*/x * * * *",
                           "*/ * * * *",
                           "1,,2 * * * *",
                           ", * * * *",
                           "* * * jam *",
                           "jan * * * *",
                           "* * * * jan",
                           "1.5 * * * *",
                           "@reboot",
                           "@",
                           "@Hourly",
                           "99999999999999999999 * * * *",
                           "* * * * mon-",
                           "*-5 * * * *",
                           "**/2 * * * *",
                           "*/61 * * * *"}) {
    const auto cron = Cron::parse(text);
    ASSERT_FALSE(cron) << text;
    EXPECT_EQ(cron.error().code, Code::kInvalid);
  }
}

TEST(Cron, ADayThatNeverComesIsRefused) {
  for (const char* text : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2"}) {
    const auto cron = Cron::parse(text);
    ASSERT_FALSE(cron) << text;
    EXPECT_NE(cron.error().message.find("never comes"), std::string::npos);
  }
}

TEST(Cron, ErrorsNameTheField) {
  EXPECT_NE(Cron::parse("* 24 * * *").error().message.find("hour"), std::string::npos);
  EXPECT_NE(Cron::parse("* * * *").error().message.find("five"), std::string::npos);
}

}  // namespace
}  // namespace cay
