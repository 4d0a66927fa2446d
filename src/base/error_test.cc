#include "base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace cay {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return fail(Code::kInvalid, "odd");
  return number / 2;
}

Result<int> quarter(int number) {
  CAY_ASSIGN(const int once, half(number));
  CAY_TRY(half(once));
  return half(once);
}

TEST(Error, TravelsThroughTheMacros) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Error, OfASystemCallNamesItAndItsKind) {
  const Error error = sysError("open '/x'", ENOENT);
  EXPECT_EQ(error.message, "open '/x': No such file or directory");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.sys, ENOENT);
  EXPECT_EQ(sysError("x", EMFILE).code, Code::kExhausted);
  EXPECT_EQ(sysError("x", EIO).code, Code::kInternal);
}

TEST(Error, WrapPutsTheContextInFront) {
  EXPECT_EQ((Error{Code::kInvalid, 0, "b"}).wrap("a").message, "a: b");
}

TEST(Error, DescribesEveryErrno) {
  EXPECT_EQ(errnoText(99999), "Unknown error 99999");
}

}  // namespace
}  // namespace cay
