#include "sandbox/registry.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/ids.h"
#include "sandbox/registry_fixture.h"

namespace cay::sandbox {
namespace {

TEST_F(RegistryTest, EachSandboxHasAnIdATokenAndASlotOfItsOwn) {
  const auto created = create(request(5));
  EXPECT_EQ(created.rejected, 0U);
  std::set<std::string> ids;
  std::set<std::string> tokens;
  std::set<uint32_t> slots;
  for (const PooledPtr& pooled : created.sandboxes) {
    ids.insert(pooled->record.id);
    tokens.insert(pooled->record.token);
    slots.insert(pooled->record.slot);
    EXPECT_EQ(pooled->record.token.size(), 64U);
    EXPECT_EQ(find(pooled->record.id), pooled);
    EXPECT_TRUE(fs::exists(state() / "sandboxes" / pooled->record.id / "record.json"));
  }
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_EQ(tokens.size(), 5U);
  EXPECT_EQ(slots, (std::set<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(entriesIn("new"), 0U);
  EXPECT_TRUE(plans_.empty()) << "a keeper was started before there was work for it";
}

TEST_F(RegistryTest, ASlotThatStillHoldsSomethingIsAskedAgainLater) {
  givesBack_ = false;
  retire(createOne());
  EXPECT_TRUE(loop_->await(registry_->cleared(Millis(20'000))));
  EXPECT_EQ(createOne()->record.slot, 1U);
  tickIn(0);
  EXPECT_EQ(createOne()->record.slot, 2U) << "it held something still";
  givesBack_ = true;
  tickIn(1'000);
  EXPECT_EQ(createOne()->record.slot, 3U) << "not all the time";
  tickIn(10'000);
  EXPECT_TRUE(slotComesFree(0));
}

TEST_F(RegistryTest, ASlotThatStillHoldsSomethingIsTakenBeforeNone) {
  givesBack_ = false;
  openWithSlots(2);
  const PooledPtr first = createOne();
  (void)createOne();
  retire(first);
  EXPECT_TRUE(loop_->await(registry_->cleared(Millis(20'000))));
  EXPECT_EQ(createOne()->record.slot, 0U);
  EXPECT_EQ(tryCreate(request()).error().code, Code::kExhausted);
}

TEST_F(RegistryTest, ANameThatIsGivenIsTakenAndMayBeUsedAgain) {
  auto named = request();
  named.id = "0123456789abcdef01234567";
  const PooledPtr first = create(named).sandboxes.at(0);
  EXPECT_EQ(first->record.id, named.id);
  EXPECT_EQ(tryCreate(named).error().code, Code::kConflict);
  for (const char* bad : {"s-0123456789abcdef", "..", "a/b", "A", "a.b"}) {
    auto wrong = request();
    wrong.id = bad;
    EXPECT_EQ(tryCreate(wrong).error().code, Code::kInvalid) << bad;
  }
  auto two = request(2);
  two.id = "two";
  EXPECT_EQ(tryCreate(two).error().code, Code::kInvalid);

  const ExecPtr exec = start(first, "sleep 1000");
  retire(first);
  const PooledPtr second = create(named).sandboxes.at(0);
  EXPECT_NE(second, first);
  EXPECT_FALSE(findGone(named.id));
  EXPECT_TRUE(eventually([&] { return !isLive(exec); }));
  restart();
  ASSERT_TRUE(find(named.id)) << "the death of the first is not that of the second";
  EXPECT_EQ(find(named.id)->record.token, second->record.token);
  ::kill(exec->pid, SIGKILL);
}

TEST_F(RegistryTest, TwoWithTheSameNameAtTheSameTimeAreOne) {
  auto named = request();
  named.id = "twin";
  std::future<std::vector<std::string>> both[] = {askAtOnce(named), askAtOnce(named)};
  size_t made = 0;
  for (auto& one : both) {
    try {
      made += one.get().size();
    } catch (const std::bad_expected_access<Error>& refused) {
      EXPECT_EQ(refused.error().code, Code::kConflict);
    }
  }
  EXPECT_EQ(made, 1U);
}

TEST_F(RegistryTest, WhatAJobNeedsReachesItsKeeper) {
  PoolSpec spec;
  spec.binds = {{.source = "/v", .at = "/data", .readOnly = true}};
  spec.devices = {"/dev/nvidia0"};
  spec.network = isolation::Network::kGiven;
  spec.lifetimeMs = 60'000;
  spec.stays = true;
  auto named = request();
  named.spec = spec;
  named.id = "job";
  (void)create(named);
  restart();
  const PooledPtr pooled = find("job");
  ASSERT_TRUE(pooled);
  const ExecPtr exec = start(pooled, "true");
  EXPECT_TRUE(eventually([&] { return !isLive(exec); }));
  ASSERT_EQ(plans_.size(), 1U);
  EXPECT_EQ(plans_[0].binds, spec.binds);
  EXPECT_EQ(plans_[0].devices, spec.devices);
  EXPECT_EQ(plans_[0].network, spec.network);
  EXPECT_TRUE(plans_[0].stays);
  EXPECT_GT(plans_[0].lifetimeMs, 0);
  EXPECT_LE(plans_[0].lifetimeMs, 60'000) << "counted from its creation";
  tickIn(60'000);
  EXPECT_TRUE(loop_->call([&] { return pooled->sandbox.hasKeeper(); })) << "it stays without work";
}

TEST_F(RegistryTest, CapacityIsExactAndOnlyCapacityRejects) {
  EXPECT_EQ(create(request(7)).sandboxes.size(), 7U);
  const auto more = create(request(7));
  EXPECT_EQ(more.sandboxes.size(), 3U);
  EXPECT_EQ(more.rejected, 4U);
  const auto none = create(request(2));
  EXPECT_TRUE(none.sandboxes.empty());
  EXPECT_EQ(none.rejected, 2U);
  retire(more.sandboxes[0]);
  EXPECT_EQ(create(request(2)).rejected, 1U);
}

TEST_F(RegistryTest, CapacityIsExactUnderConcurrentCreates) {
  constexpr size_t kClients = 30;
  std::vector<std::future<std::vector<std::string>>> answers;
  answers.reserve(kClients);
  for (size_t i = 0; i < kClients; ++i) answers.push_back(askAtOnce(request()));
  size_t made = 0;
  for (auto& answer : answers) made += answer.get().size();
  EXPECT_EQ(made, 10U);
  EXPECT_EQ(list().size(), 10U);
}

TEST_F(RegistryTest, ABatchThatFailsLeavesNothingBehind) {
  fs::remove(state() / "new");
  const auto failed = tryCreate(request(3));
  ASSERT_FALSE(failed);
  EXPECT_TRUE(list().empty());
  EXPECT_EQ(entriesIn("sandboxes"), 0U);
  auto unknown = request();
  unknown.spec.image = "no such image";
  const auto refused = tryCreate(unknown);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  restart();
  EXPECT_EQ(createOne()->record.slot, 0U) << "a failed create kept its slot";
  EXPECT_EQ(create(request(20)).sandboxes.size(), 9U) << "a failed create kept its place";
}

TEST_F(RegistryTest, TheSameKeyGivesTheSameSandboxes) {
  auto wanted = request(2);
  wanted.key = "k";
  wanted.fingerprint = "f";
  const auto first = create(wanted);
  const auto again = create(wanted);
  EXPECT_EQ(first.sandboxes, again.sandboxes);
  auto other = wanted;
  other.fingerprint = "g";
  const auto refused = tryCreate(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnprocessable);

  restart();
  const auto later = create(wanted);
  ASSERT_EQ(later.sandboxes.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(later.sandboxes[i]->record.id, first.sandboxes[i]->record.id);
    EXPECT_EQ(later.sandboxes[i]->record.token, first.sandboxes[i]->record.token);
  }
  for (const PooledPtr& pooled : later.sandboxes) retire(pooled);
  EXPECT_NE(create(wanted).sandboxes.at(0)->record.id, first.sandboxes[0]->record.id);
}

TEST_F(RegistryTest, TwoConcurrentRequestsWithOneKeyMakeOneSandbox) {
  auto wanted = request();
  wanted.key = "k";
  auto one = askAtOnce(wanted);
  auto two = askAtOnce(wanted);
  EXPECT_EQ(one.get(), two.get());
  EXPECT_EQ(list().size(), 1U);
}

TEST_F(RegistryTest, ARestartKeepsSandboxesTheirTokensAndWhatRunsInThem) {
  PoolSpec spec;
  spec.env = {"A=1"};
  spec.labels = {{"a", "b"}};
  const PooledPtr before = createOne(spec);
  const PooledPtr idle = createOne();
  const ExecPtr process = start(before, "echo one; sleep 60; echo two");
  const pid_t pid = loop_->call([&] { return process->pid; });
  restart();

  const PooledPtr after = find(before->record.id);
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->record.token, before->record.token);
  EXPECT_EQ(*after->record.spec, spec);
  EXPECT_NE(find(idle->record.id), nullptr);
  EXPECT_TRUE(runs(pid));
  const auto processes = loop_->call([&] { return after->sandbox.processes(); });
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0]->pid, pid);
  EXPECT_TRUE(isLive(processes[0]));
  EXPECT_GT(createOne()->record.slot, 1U) << "a slot was given out twice";
  EXPECT_TRUE(loop_->await(after->sandbox.kill(processes[0])));
}

TEST_F(RegistryTest, ADeletedOneDiesAtOnceAndItsFilesSoon) {
  const PooledPtr pooled = createOne();
  const ExecPtr process = start(pooled, "sleep 60");
  const pid_t pid = loop_->call([&] { return process->pid; });
  retire(pooled);
  EXPECT_EQ(find(pooled->record.id), nullptr);
  const auto gone = findGone(pooled->record.id);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->token, pooled->record.token);
  EXPECT_EQ(gone->death, Death::kKilled);
  loop_->await(Registry::ended(pooled));
  EXPECT_EQ(loop_->call([&] { return process->exit->cause; }), Cause::kKilled);
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
  EXPECT_TRUE(slotComesFree(0));
  // Without walls only the keeper itself dies; what it started is ours to end.
  ::kill(pid, SIGKILL);

  const auto late = loop_->await(pooled->sandbox.start(command("true")));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kGone);
  restart();
  EXPECT_TRUE(findGone(pooled->record.id));
}

TEST_F(RegistryTest, WhoeverWaitsForFilesToBeRemovedIsToldWhetherTheyAre) {
  const PooledPtr pooled = createOne();
  std::optional<Activity::InUse> reader;
  loop_->call([&] { reader.emplace(pooled->activity, monotonicMs); });
  EXPECT_TRUE(loop_->await(registry_->cleared(Millis(0))));
  retire(pooled);
  EXPECT_FALSE(loop_->await(registry_->cleared(Millis(50)))) << "it is still being read";
  EXPECT_EQ(entriesIn("trash"), 1U);
  loop_->call([&] { reader.reset(); });
  EXPECT_TRUE(loop_->await(registry_->cleared(Millis(10'000))));
  EXPECT_EQ(entriesIn("trash"), 0U);
}

TEST_F(RegistryTest, HalfMadeAndHalfDeletedOnesAreSweptAtTheStart) {
  const PooledPtr torn = createOne();
  const PooledPtr whole = createOne();
  const PooledPtr dead = createOne();
  const PooledPtr trashed = createOne();
  const ExecPtr process = start(trashed, "sleep 60");
  const pid_t pid = loop_->call([&] { return process->pid; });
  close();
  // What a host leaves that is killed in the middle: a batch of which one has appeared, one that is
  // not complete, one whose death is noted, one that is in the trash with its keeper alive.
  std::ofstream(state() / "new" / ("batch." + torn->record.id)) << torn->record.id << "\n";
  fs::create_directories(state() / "new" / newId(kPoolIdPrefix) / "execs");
  std::ofstream(state() / "gone.jsonl", std::ios::app)
      << R"({"id":")" << dead->record.id << R"(","token":")" << dead->record.token
      << R"(","cause":"evicted","at_ms":)" << wallMs() << "}\n";
  fs::rename(state() / "sandboxes" / trashed->record.id,
             state() / "trash" / (trashed->record.id + ".3"));
  open();

  EXPECT_EQ(find(torn->record.id), nullptr);
  EXPECT_NE(find(whole->record.id), nullptr);
  EXPECT_EQ(find(dead->record.id), nullptr);
  EXPECT_TRUE(findGone(dead->record.id));
  EXPECT_EQ(find(trashed->record.id), nullptr);
  EXPECT_EQ(entriesIn("new"), 0U);
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
  EXPECT_EQ(entriesIn("sandboxes"), 1U);
  ::kill(pid, SIGKILL);
}

TEST_F(RegistryTest, ABrokenRecordCostsOneSandboxAndNotTheStart) {
  const PooledPtr broken = createOne();
  const PooledPtr empty = createOne();
  const PooledPtr swapped = createOne();
  const PooledPtr whole = createOne();
  const ExecPtr process = start(broken, "sleep 60");
  const pid_t pid = loop_->call([&] { return process->pid; });
  close();
  const auto recordOf = [&](const PooledPtr& pooled) {
    return state() / "sandboxes" / pooled->record.id / "record.json";
  };
  std::ofstream(recordOf(broken)) << "garbage";
  fs::remove_all(state() / "sandboxes" / empty->record.id);
  fs::create_directory(state() / "sandboxes" / empty->record.id);
  fs::copy_file(recordOf(whole), recordOf(swapped), fs::copy_options::overwrite_existing);
  open();
  ASSERT_EQ(list().size(), 1U);
  EXPECT_EQ(list()[0]->record.id, whole->record.id);
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
  EXPECT_TRUE(slotComesFree(0));
  ::kill(pid, SIGKILL);
}

TEST_F(RegistryTest, SlotsOfWhatIsStillBeingRemovedAreNotGivenOut) {
  const PooledPtr pooled = createOne();
  close();
  fs::rename(state() / "sandboxes" / pooled->record.id,
             state() / "trash" / (pooled->record.id + ".0"));
  open();
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
  EXPECT_TRUE(slotComesFree(0));
}

TEST_F(RegistryTest, SandboxesWithOtherWallsAreNotTakenUp) {
  (void)createOne();
  close();
  auto folder = PoolFolder::open(state());
  ASSERT_TRUE(folder);
  ASSERT_TRUE(folder->fitFor(isolation::Mode::kFull));
  loop_ = std::make_unique<testing::LoopThread>();
  Registry::Options options;
  options.images = images_.get();
  auto registry = loop_->await(Registry::open(loop_->io(), std::move(*folder), std::move(options)));
  ASSERT_FALSE(registry);
  EXPECT_EQ(registry.error().code, Code::kConflict);
  EXPECT_TRUE(registry.error().message.contains("restricted")) << registry.error().message;
}

TEST_F(RegistryTest, IdleOnesAreEvictedAndBusyOnesNot) {
  PoolSpec spec;
  spec.idleTimeoutMs = 60'000;
  const PooledPtr idle = createOne(spec);
  const PooledPtr running = createOne(spec);
  const PooledPtr used = createOne(spec);
  const PooledPtr patient = createOne();
  const ExecPtr process = start(running, "sleep 60");
  std::optional<Activity::InUse> stream;
  loop_->call([&] { stream.emplace(used->activity, monotonicMs); });
  tickIn(59'000);
  EXPECT_EQ(list().size(), 4U);
  tickIn(61'000);
  EXPECT_EQ(find(idle->record.id), nullptr);
  EXPECT_EQ(findGone(idle->record.id)->death, Death::kEvicted);
  EXPECT_NE(find(running->record.id), nullptr);
  EXPECT_NE(find(used->record.id), nullptr);
  tickIn(100'000'000);
  EXPECT_NE(find(patient->record.id), nullptr) << "0 means never";
  loop_->call([&] { stream.reset(); });
  EXPECT_TRUE(loop_->await(running->sandbox.kill(process)));
}

TEST_F(RegistryTest, TimeToLiveEndsEvenABusyOne) {
  PoolSpec spec;
  spec.ttlMs = 600'000;
  const PooledPtr pooled = createOne(spec);
  const ExecPtr process = start(pooled, "exec sleep 60");
  tickIn(500'000);
  EXPECT_NE(find(pooled->record.id), nullptr);
  restart();
  tickIn(500'000);
  EXPECT_NE(find(pooled->record.id), nullptr);
  tickIn(601'000);
  EXPECT_EQ(findGone(pooled->record.id)->death, Death::kExpired);
  ::kill(process->pid, SIGKILL);
}

TEST_F(RegistryTest, AKeeperEndsTenSecondsAfterItsLastWorkAndComesBack) {
  const PooledPtr pooled = createOne();
  const ExecPtr first = start(pooled, "echo hello");
  ASSERT_TRUE(eventually([&] { return !isLive(first); }));
  const auto hasKeeper = [&] { return loop_->call([&] { return pooled->sandbox.hasKeeper(); }); };
  tickIn(9'000);
  EXPECT_TRUE(hasKeeper());
  tickIn(11'000);
  // At once, while the old one may still be on its way out.
  const ExecPtr second = start(pooled, "sleep 60");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(plans_.size(), 2U);
  tickIn(3'600'000);
  EXPECT_TRUE(isLive(second)) << "its keeper was taken from under it";
  EXPECT_NE(loop_->call([&] { return pooled->sandbox.find(first->id); }), nullptr);
  EXPECT_TRUE(loop_->await(pooled->sandbox.kill(second)));
}

TEST_F(RegistryTest, ShutdownEndsCommandsAndKeepsSandboxes) {
  const PooledPtr pooled = createOne();
  const ExecPtr process = start(pooled, "sleep 60");
  const pid_t pid = loop_->call([&] { return process->pid; });
  loop_->await(registry_->shutdown());
  EXPECT_TRUE(eventually([&] { return !runs(pid); }));
  EXPECT_EQ(loop_->call([&] { return process->exit->cause; }), Cause::kHostStopped);
  restart();
  const PooledPtr after = find(pooled->record.id);
  ASSERT_NE(after, nullptr);
  const auto processes = loop_->call([&] { return after->sandbox.processes(); });
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0]->exit->cause, Cause::kHostStopped);
}

TEST_F(RegistryTest, TheImageOfASandboxStaysAsLongAsTheSandbox) {
  openWithMachine();
  const PooledPtr pooled = createOne();
  const std::string old = pooled->record.imageVersion;
  ASSERT_FALSE(old.empty());
  (void)dir_.write("machine/usr/bin/tool", "x");
  int64_t hours = 0;
  const auto anotherHour = [&] { tickIn(++hours * 3'600'000); };
  ASSERT_TRUE(eventually([&] {
    anotherHour();
    const PooledPtr next = createOne();
    retire(next);
    return next->record.imageVersion != old;
  }));
  const fs::path stale = state() / "images/host/stale.1";
  fs::create_directory(stale);
  ASSERT_TRUE(eventually([&] {
    anotherHour();
    return !fs::exists(stale);
  }));
  EXPECT_TRUE(fs::exists(state() / "images/host" / old));
  retire(pooled);
  EXPECT_TRUE(eventually([&] {
    anotherHour();
    return !fs::exists(state() / "images/host" / old);
  }));
}

TEST_F(RegistryTest, WithoutAKeeperASandboxHoldsNoDescriptor) {
  const auto open = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator{});
  };
  const auto before = open();
  (void)create(request(10));
  // Spare folders are made meanwhile.
  EXPECT_TRUE(eventually([&] { return open() == before; })) << open() << " after " << before;
}

}  // namespace
}  // namespace cay::sandbox
