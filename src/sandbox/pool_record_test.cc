#include "sandbox/pool_record.h"

#include <gtest/gtest.h>

#include "base/ids.h"

namespace cay::sandbox {
namespace {

PoolRecord sample() {
  PoolSpec spec;
  spec.env = {"A=1", "B=\u2028 \" x"};
  spec.idleTimeoutMs = 90'000;
  spec.ttlMs = 3'600'000;
  spec.limits = {.memoryBytes = 1ULL << 33, .pids = 100, .milliCpus = 1500, .diskBytes = 64 << 20};
  spec.network = isolation::Network::kNone;
  spec.image = "debian";
  spec.paths = PathRule::kRoot;
  spec.labels = {{"team", "red"}, {"run", "7"}};
  spec.binds = {{.source = "/v/\"odd\"", .at = "/data", .readOnly = true},
                {.source = "/h", .at = "/etc/hosts", .isFile = true}};
  spec.devices = {"/dev/nvidia0"};
  spec.lifetimeMs = 86'400'000;
  spec.stays = true;
  PoolRecord record;
  record.id = newId(kPoolIdPrefix);
  record.token = randomHex(kTokenBytes);
  record.mode = isolation::Mode::kRestricted;
  record.slot = 4321;
  record.createdAtMs = 1'700'000'000'000;
  record.imageVersion = "v1";
  record.spec = std::make_shared<PoolSpec>(spec);
  record.key = "key";
  record.fingerprint = "f";
  record.index = 3;
  record.rejected = 2;
  return record;
}

TEST(PoolRecord, ComesBackAsItWas) {
  const PoolRecord before = sample();
  const auto after = parseRecord(recordText(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->id, before.id);
  EXPECT_EQ(after->token, before.token);
  EXPECT_EQ(after->mode, before.mode);
  EXPECT_EQ(after->slot, before.slot);
  EXPECT_EQ(after->createdAtMs, before.createdAtMs);
  EXPECT_EQ(after->imageVersion, before.imageVersion);
  EXPECT_EQ(*after->spec, *before.spec);
  EXPECT_EQ(after->key, before.key);
  EXPECT_EQ(after->fingerprint, before.fingerprint);
  EXPECT_EQ(after->index, before.index);
  EXPECT_EQ(after->rejected, before.rejected);
}

TEST(PoolRecord, ARecordOfAnOlderHostIsStillOne) {
  PoolRecord before = sample();
  PoolSpec spec = *before.spec;
  spec.binds.clear();
  spec.devices.clear();
  spec.lifetimeMs = 0;
  spec.stays = false;
  before.spec = std::make_shared<PoolSpec>(spec);
  std::string text = recordText(before);
  const size_t from = text.find(",\"binds\"");
  text.erase(from, text.find(",\"key\"") - from);
  const auto after = parseRecord(text);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*after->spec, spec);
}

TEST(PoolRecord, GivenIdsAndNetworksComeBackToo) {
  PoolRecord before = sample();
  before.id = "0123456789abcdef01234567";
  PoolSpec spec = *before.spec;
  spec.network = isolation::Network::kGiven;
  before.spec = std::make_shared<PoolSpec>(spec);
  const auto after = parseRecord(recordText(before));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->id, before.id);
  EXPECT_EQ(*after->spec, spec);
  for (const std::string id : {"", "..", "a/b", "a.b", "A", "s-x", "a b", "a\n"}) {
    before.id = id;
    EXPECT_FALSE(parseRecord(recordText(before))) << id;
  }
  before.id = std::string(kMostIdBytes + 1, 'a');
  EXPECT_FALSE(parseRecord(recordText(before)));
}

TEST(PoolRecord, ABrokenOneIsRefusedByName) {
  EXPECT_FALSE(parseRecord(""));
  EXPECT_FALSE(parseRecord("[]"));
  const std::string text = recordText(sample());
  EXPECT_FALSE(parseRecord(text.substr(0, text.size() / 2)));
  std::string other = text;
  other.replace(other.find("\"slot\""), 6, "\"slut\"");
  const auto parsed = parseRecord(other);
  ASSERT_FALSE(parsed);
  EXPECT_TRUE(parsed.error().message.contains("'slot'")) << parsed.error().message;
  other = text;
  other.replace(other.find("restricted"), 10, "resTricted");
  EXPECT_FALSE(parseRecord(other));
}

}  // namespace
}  // namespace cay::sandbox
