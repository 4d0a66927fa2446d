#include "hub/diagnosis.h"

#include <gmock/gmock.h>

namespace cay::hub {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kStart = 1'000'000;

// A client that waits for its job: asks at `firstMs` after the start and every `everyMs` from then.
void wait(Diagnosis& diagnosis, int64_t firstMs, int64_t untilMs, int64_t everyMs = 2150,
          bool byInitiator = true) {
  for (int64_t at = firstMs; at <= untilMs; at += everyMs) {
    diagnosis.inspected(byInitiator, kStart + at);
  }
}

Diagnosis started() {
  Diagnosis diagnosis;
  diagnosis.running(kStart);
  return diagnosis;
}

TEST(Diagnosis, AWaitingClientThatNothingComesFrom) {
  Diagnosis diagnosis = started();
  for (int64_t at = 0; at < 10'000; at += 50) {
    if (at % 2150 == 0) diagnosis.inspected(true, kStart + at);
    EXPECT_EQ(diagnosis.verdict(kStart + at), std::nullopt) << at;
  }
  EXPECT_EQ(diagnosis.verdict(kStart + 9'999), std::nullopt);
  EXPECT_EQ(diagnosis.verdict(kStart + 10'000), Unreached::kNothingCame);
}

TEST(Diagnosis, WhatHappenedToSomebodyChoosesTheCause) {
  Diagnosis distrusting = started();
  distrusting.tlsRefused();
  wait(distrusting, 0, 10'000);
  EXPECT_EQ(distrusting.verdict(kStart + 10'000), Unreached::kDistrust);

  Diagnosis refused = started();
  refused.proxyRefused();
  wait(refused, 0, 10'000);
  EXPECT_EQ(refused.verdict(kStart + 10'000), Unreached::kProxyRefused);

  // The last one is what stands in the way now.
  refused.tlsRefused();
  EXPECT_EQ(refused.verdict(kStart + 10'000), Unreached::kDistrust);
  refused.proxyRefused();
  EXPECT_EQ(refused.verdict(kStart + 10'000), Unreached::kProxyRefused);
}

TEST(Diagnosis, CausesMayBeSeenBeforeTheJobRuns) {
  Diagnosis diagnosis;
  diagnosis.tlsRefused();
  diagnosis.running(kStart);
  wait(diagnosis, 0, 10'000);
  EXPECT_EQ(diagnosis.verdict(kStart + 10'000), Unreached::kDistrust);
}

TEST(Diagnosis, RefusalsAloneEndNothing) {
  Diagnosis diagnosis = started();
  for (int i = 0; i < 1000; ++i) {
    diagnosis.tlsRefused();
    diagnosis.proxyRefused();
  }
  for (int64_t at = 0; at < 200'000; at += 1000) {
    EXPECT_EQ(diagnosis.verdict(kStart + at), std::nullopt);
  }
}

TEST(Diagnosis, NobodyButTheInitiatorCanEndIt) {
  Diagnosis diagnosis = started();
  wait(diagnosis, 0, 120'000, 100, false);
  for (int64_t at = 0; at < 130'000; at += 1000) {
    EXPECT_EQ(diagnosis.verdict(kStart + at), std::nullopt);
  }
  // Nor fill the initiator's gaps.
  Diagnosis mixed = started();
  wait(mixed, 0, 20'000, 5000);
  wait(mixed, 0, 20'000, 100, false);
  EXPECT_EQ(mixed.verdict(kStart + 20'000), std::nullopt);
}

TEST(Diagnosis, AReachedJobIsNeverEnded) {
  Diagnosis early;
  early.reached();
  early.running(kStart);
  wait(early, 0, 20'000);
  EXPECT_EQ(early.verdict(kStart + 20'000), std::nullopt);

  Diagnosis late = started();
  wait(late, 0, 10'000);
  ASSERT_TRUE(late.verdict(kStart + 10'000));
  late.reached();
  EXPECT_EQ(late.verdict(kStart + 10'000), std::nullopt);
  late.tlsRefused();
  late.running(kStart + 11'000);
  for (int64_t at = 11'000; at < 40'000; at += 2000) late.inspected(true, kStart + at);
  EXPECT_EQ(late.verdict(kStart + 39'000), std::nullopt);
}

TEST(Diagnosis, AJobThatDoesNotRunIsNotJudged) {
  Diagnosis diagnosis;
  wait(diagnosis, 0, 60'000);
  EXPECT_EQ(diagnosis.verdict(kStart + 60'000), std::nullopt);
  // Questions from before do not count.
  diagnosis.running(kStart + 60'000);
  EXPECT_EQ(diagnosis.verdict(kStart + 70'000), std::nullopt);
}

TEST(Diagnosis, ANewAttemptHasItsOwnTime) {
  Diagnosis diagnosis = started();
  wait(diagnosis, 0, 8'000);
  diagnosis.running(kStart + 8'000);
  EXPECT_EQ(diagnosis.verdict(kStart + 10'000), std::nullopt);
  wait(diagnosis, 8'100, 17'900);
  EXPECT_EQ(diagnosis.verdict(kStart + 17'999), std::nullopt);
  EXPECT_EQ(diagnosis.verdict(kStart + 18'000), Unreached::kNothingCame);
}

TEST(Diagnosis, TheClientMustStillBeWaiting) {
  Diagnosis diagnosis = started();
  wait(diagnosis, 0, 9'000);  // last at 8'600
  EXPECT_TRUE(diagnosis.verdict(kStart + 12'600));
  EXPECT_EQ(diagnosis.verdict(kStart + 12'601), std::nullopt);
}

TEST(Diagnosis, FourQuestionsOverSixSecondsAreTheLeast) {
  const auto verdictAfter = [](std::initializer_list<int64_t> times) {
    Diagnosis diagnosis = started();
    for (const int64_t at : times) diagnosis.inspected(true, kStart + at);
    return diagnosis.verdict(kStart + 20'000);
  };
  EXPECT_TRUE(verdictAfter({13'000, 15'000, 17'000, 19'000}));
  EXPECT_TRUE(verdictAfter({8'000, 12'000, 16'000, 20'000}));
  EXPECT_FALSE(verdictAfter({13'000, 16'000, 19'000}));                  // three
  EXPECT_FALSE(verdictAfter({13'001, 15'000, 17'000, 19'000}));          // too quickly
  EXPECT_FALSE(verdictAfter({19'000, 19'100, 19'200, 19'300, 19'400}));  // somebody at a keyboard
  EXPECT_FALSE(verdictAfter({1'000, 3'000, 5'000, 7'000, 19'000}));      // with a pause
  EXPECT_FALSE(verdictAfter({7'000, 9'000, 13'001, 15'000, 18'000}));    // with a short pause
}

TEST(Diagnosis, ClientsThatWaitLongerAreNotWaitingForTheFirstAnswer) {
  Diagnosis diagnosis = started();
  wait(diagnosis, 0, 150'000);
  EXPECT_TRUE(diagnosis.verdict(kStart + 130'000));
  EXPECT_EQ(diagnosis.verdict(kStart + 130'001), std::nullopt);
}

TEST(Explain, SaysWhatToDo) {
  const EdgeFacts facts{.url = "https://abc--49983.cay.localhost:7343",
                        .domain = "cay.localhost",
                        .bundle = "/var/lib/cay/ca/bundle.pem"};
  EXPECT_EQ(explain(Unreached::kDistrust, facts),
            "your client does not trust this hub's certificate: set "
            "SSL_CERT_FILE=/var/lib/cay/ca/bundle.pem, or run eval \"$(cay env)\"");
  EXPECT_EQ(explain(Unreached::kProxyRefused, facts),
            "your client's HTTPS_PROXY names this hub without a valid token: run "
            "eval \"$(cay env)\"");
  const std::string nothing = explain(Unreached::kNothingCame, facts);
  EXPECT_THAT(nothing, HasSubstr("no request for https://abc--49983.cay.localhost:7343 arrived"));
  EXPECT_THAT(nothing, HasSubstr("*.cay.localhost does not resolve"));
  EXPECT_THAT(nothing, HasSubstr("libnss-myhostname"));
  EXPECT_THAT(nothing, HasSubstr("eval \"$(cay env)\""));
}

}  // namespace
}  // namespace cay::hub
