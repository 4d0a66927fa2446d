#include "engine/local_engine.h"

#include <gmock/gmock.h>

#include "engine/local_engine_fixture.h"

namespace cay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(LocalEngineTest, ACommandRunsToItsEnd) {
  open();
  const JobSpec spec = submit(job("echo hello; echo $JOB_ID $A >&2"));
  const Status end = awaitEnd(spec.id);
  EXPECT_EQ(stageName(end.stage), "COMPLETED") << end.message;
  EXPECT_EQ(end.exitCode, 0);
  EXPECT_EQ(end.image, "host");
  EXPECT_GT(end.startedAtMs, 0);
  EXPECT_GE(end.finishedAtMs, end.startedAtMs);
  EXPECT_EQ(told_.last(spec.id), end);
  EXPECT_THAT(lines(spec.id), ElementsAre(StartsWith("===== Job started at 20"), "hello",
                                          StartsWith(spec.id)));
}

}  // namespace
}  // namespace cay::engine
