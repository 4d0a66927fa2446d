#include "sys/signal_name.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

namespace cay::sys {
namespace {

TEST(SignalName, AgreesWithTheSystem) {
  for (int number = 1; number < NSIG; ++number) {
    const char* known = ::sigabbrev_np(number);
    EXPECT_EQ(signalName(number), known != nullptr ? known : "") << number;
    if (known != nullptr) EXPECT_EQ(signalNumber(known), number);
  }
}

TEST(SignalName, KnowsNothingElse) {
  EXPECT_EQ(signalName(0), "");
  EXPECT_EQ(signalName(-1), "");
  EXPECT_EQ(signalNumber(""), 0);
  EXPECT_EQ(signalNumber("int"), 0);
}

}  // namespace
}  // namespace cay::sys
