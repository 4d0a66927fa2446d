#include "sandbox/wire.h"

#include <gtest/gtest.h>

namespace cay::sandbox {
namespace {

TEST(Wire, ASpecComesBackAsItWas) {
  ExecSpec spec;
  spec.id = "x-0123456789abcdef";
  spec.kind = Kind::kProcess;
  spec.argv = {"a", "", std::string("\xFF\n", 2)};
  spec.env = {"A=1", "B="};
  spec.cwd = "/tmp";
  spec.timeoutMs = 1500;
  spec.onDisconnect = OnDisconnect::kKeepShort;
  spec.stdinMode = Stdin::kData;
  spec.meta = "{}";
  spec.file = "x-fedcba9876543210";
  spec.overwrite = true;
  spec.lines = true;
  Writer out;
  putSpec(out, spec);
  Reader in(out.bytes());
  const ExecSpec back = getSpec(in);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.atEnd());
  EXPECT_EQ(back.id, spec.id);
  EXPECT_EQ(back.kind, spec.kind);
  EXPECT_EQ(back.argv, spec.argv);
  EXPECT_EQ(back.env, spec.env);
  EXPECT_EQ(back.cwd, spec.cwd);
  EXPECT_EQ(back.timeoutMs, spec.timeoutMs);
  EXPECT_EQ(back.onDisconnect, spec.onDisconnect);
  EXPECT_EQ(back.stdinMode, spec.stdinMode);
  EXPECT_EQ(back.meta, spec.meta);
  EXPECT_EQ(back.file, spec.file);
  EXPECT_TRUE(back.overwrite);
  EXPECT_TRUE(back.lines);
}

TEST(Wire, AnExitRecordComesBackAsItWas) {
  ExitRecord record;
  record.cause = Cause::kOom;
  record.signal = 9;
  record.pid = 42;
  record.durationMs = 77;
  record.usage = {1, 2, 3, 4, 5};
  record.outputBytes[kStderr] = 6;
  record.error = "why";
  Writer out;
  putExit(out, record);
  Reader in(out.bytes());
  const ExitRecord back = getExit(in);
  EXPECT_TRUE(in.ok());
  EXPECT_EQ(back.cause, Cause::kOom);
  EXPECT_EQ(back.exitCode, std::nullopt);
  EXPECT_EQ(back.signal, 9);
  EXPECT_EQ(back.pid, 42);
  EXPECT_EQ(back.durationMs, 77);
  EXPECT_EQ(back.usage.writeBytes, 5U);
  EXPECT_EQ(back.outputBytes[kStderr], 6U);
  EXPECT_EQ(back.error, "why");
}

TEST(Wire, WhatIsCutShortIsNoticedAndNeverReadPast) {
  Writer out;
  ExecSpec spec;
  spec.id = "id";
  spec.argv = {"true"};
  putSpec(out, spec);
  for (size_t length = 0; length < out.bytes().size(); ++length) {
    Reader in(std::string_view(out.bytes()).substr(0, length));
    (void)getSpec(in);
    EXPECT_FALSE(in.ok()) << length;
  }
}

TEST(Wire, EveryCauseHasItsOwnName) {
  std::vector<std::string_view> names;
  for (int cause = 0; cause <= static_cast<int>(Cause::kHostLost); ++cause) {
    const std::string_view name = causeName(static_cast<Cause>(cause));
    EXPECT_NE(name, "unknown");
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 0);
    names.push_back(name);
  }
}

}  // namespace
}  // namespace cay::sandbox
