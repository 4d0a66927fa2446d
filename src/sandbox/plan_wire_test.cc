#include "sandbox/plan_wire.h"

#include <gtest/gtest.h>

namespace cay::sandbox {
namespace {

isolation::Plan example() {
  return {.id = "s-0123",
          .mode = isolation::Mode::kUnprivileged,
          .network = isolation::Network::kNone,
          .slot = 7,
          .firstUid = 700'000,
          .root = {{.at = "/", .lowers = {"/a", "/b"}}, {.at = "/usr", .lowers = {"/usr"}}},
          .limits = {.memoryBytes = 1, .pids = 2, .milliCpus = 3, .diskBytes = 4},
          .binds = {{.source = "/v", .at = "/data", .readOnly = true},
                    {.source = "/h", .at = "/etc/hosts", .isFile = true}},
          .devices = {"/dev/nvidia0", "/dev/nvidiactl"},
          .lifetimeMs = 86'400'000,
          .stays = true};
}

TEST(PlanWire, ComesBackAsItWas) {
  Writer out;
  putPlan(out, example());
  Reader in(out.bytes());
  EXPECT_EQ(getPlan(in), example());
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.atEnd());
}

TEST(PlanWire, WhatIsCutOffIsNoticed) {
  Writer out;
  putPlan(out, example());
  for (size_t length = 0; length < out.bytes().size(); ++length) {
    Reader in(std::string_view(out.bytes()).substr(0, length));
    (void)getPlan(in);
    EXPECT_FALSE(in.ok()) << length;
  }
}

}  // namespace
}  // namespace cay::sandbox
