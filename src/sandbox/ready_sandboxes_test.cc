#include "sandbox/ready_sandboxes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sandbox/registry_fixture.h"
#include "sys/packet.h"

namespace cay::sandbox {
namespace {

class ReadySandboxesTest : public RegistryTest {
 protected:
  void SetUp() override {
    RegistryTest::SetUp();
    keepReady(4);
  }
  void TearDown() override {
    if (registry_) {
      keepReady(0);
      EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
    }
    RegistryTest::TearDown();
  }

  void keepReady(size_t most) {
    loop_->call([&] { registry_->setMostReady(most); });
  }
  // One that has had its first command.
  PooledPtr use(PoolSpec spec = {}) {
    PooledPtr pooled = createOne(std::move(spec));
    const ExecPtr exec = start(pooled, "true");
    EXPECT_TRUE(eventually([&] { return !isLive(exec); }));
    return pooled;
  }
  bool hasKeeper(const PooledPtr& pooled) {
    return loop_->call([&] { return pooled->sandbox.hasKeeper(); });
  }
  // What is nobody's yet, by its name.
  std::vector<fs::path> marks() const {
    std::vector<fs::path> out;
    for (const auto& folder : fs::directory_iterator(state() / "sandboxes")) {
      for (const auto& file : fs::directory_iterator(folder)) {
        if (file.path().filename().string().starts_with("ready.")) out.push_back(file.path());
      }
    }
    return out;
  }
  // By the sockets that they listen at.
  size_t keepersAlive() const {
    size_t count = 0;
    for (const char* where : {"sandboxes", "trash"}) {
      for (const auto& folder : fs::directory_iterator(state() / where)) {
        const Fd dir = sys::openAt(AT_FDCWD, folder.path().c_str(), O_RDONLY | O_DIRECTORY).value();
        count += sys::connectAt(dir.get(), "keeper.sock").has_value() ? 1 : 0;
      }
    }
    return count;
  }
  bool readyCount(size_t count) {
    return eventually([&] { return registryReady() == count; });
  }
  size_t registryReady() {
    return loop_->call([&] { return registry_->readyCount(); });
  }
};

TEST_F(ReadySandboxesTest, OneWithTheSameMountsStandsReady) {
  PoolSpec spec;
  spec.binds = {{.source = "/v", .at = "/data"}};
  (void)use(spec);
  ASSERT_TRUE(readyCount(1));
  EXPECT_EQ(plans_.back().binds, spec.binds);
  PoolSpec other = spec;
  other.binds[0].readOnly = true;
  EXPECT_FALSE(hasKeeper(createOne(other)));
  other = spec;
  other.devices = {"/dev/nvidia0"};
  EXPECT_FALSE(hasKeeper(createOne(other)));
  EXPECT_TRUE(hasKeeper(createOne(spec)));
}

TEST_F(ReadySandboxesTest, NoneStandsReadyForWhatHasThingsOfItsOwn) {
  (void)use();
  ASSERT_TRUE(readyCount(1));
  const auto spoil = std::vector<std::function<void(PoolSpec&)>>{
      [](PoolSpec& spec) { spec.network = isolation::Network::kGiven; },
      [](PoolSpec& spec) { spec.lifetimeMs = 60'000; }, [](PoolSpec& spec) { spec.stays = true; },
      [](PoolSpec& spec) { spec.limits.diskBytes = 1 << 20; }};
  for (const auto& change : spoil) {
    PoolSpec spec;
    change(spec);
    EXPECT_FALSE(ReadySandboxes::Kind::of(spec));
    if (spec.limits.diskBytes > 0) continue;  // there are no disks here
    const PooledPtr pooled = createOne(spec);
    EXPECT_FALSE(hasKeeper(pooled)) << "it has the walls of another";
    EXPECT_EQ(registryReady(), 1U);
  }
  PoolSpec mounted;
  mounted.binds = {{.source = "/v", .at = "/data"}};
  EXPECT_FALSE(hasKeeper(createOne(mounted))) << "it has the walls of another";
  auto named = request();
  named.id = "named";
  EXPECT_FALSE(hasKeeper(create(named).sandboxes.at(0)));
}

TEST_F(ReadySandboxesTest, ThereAreAsManyAsHaveBeenUsed) {
  (void)create(request(3));
  EXPECT_EQ(registryReady(), 0U) << "nothing was used";
  EXPECT_TRUE(plans_.empty());
  (void)use();
  EXPECT_TRUE(readyCount(1));
  (void)use();
  EXPECT_TRUE(readyCount(2));
  EXPECT_EQ(marks().size(), 2U);
}

TEST_F(ReadySandboxesTest, NeverMoreThanAllowed) {
  keepReady(1);
  (void)use();
  (void)use();
  EXPECT_TRUE(readyCount(1));
  keepReady(0);
  EXPECT_TRUE(eventually([&] { return marks().empty() && entriesIn("trash") == 0; }));
}

TEST_F(ReadySandboxesTest, ACreateTakesOneWithItsKeeperAndMakesItItsOwn) {
  (void)use();
  ASSERT_TRUE(readyCount(1));
  PoolSpec spec;
  spec.env = {"A=1"};
  spec.labels = {{"a", "b"}};
  spec.ttlMs = 600'000;
  const PooledPtr taken = createOne(spec);
  EXPECT_TRUE(hasKeeper(taken));
  EXPECT_EQ(*taken->record.spec, spec);
  EXPECT_EQ(taken->record.token.size(), 64U);
  EXPECT_NE(taken->expiresAtMs, Pooled::kNever);
  EXPECT_TRUE(marks().empty());
  const ExecPtr process = start(taken, "sleep 60");
  EXPECT_EQ(loop_->call(
                [&] { return std::ranges::count(plans_, taken->record.id, &isolation::Plan::id); }),
            1);

  const std::string token = taken->record.token;
  restart();
  const PooledPtr after = find(taken->record.id);
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->record.token, token);
  EXPECT_EQ(*after->record.spec, spec);
  EXPECT_EQ(loop_->call([&] { return after->sandbox.running(); }), 1U);
  tickIn(601'000);
  EXPECT_EQ(findGone(taken->record.id)->death, Death::kExpired);
  ::kill(process->pid, SIGKILL);
}

TEST_F(ReadySandboxesTest, WhatIsAskedForDifferentlyIsMadeAnew) {
  (void)use();
  ASSERT_TRUE(readyCount(1));
  PoolSpec other;
  other.limits.pids = 7;
  EXPECT_FALSE(hasKeeper(createOne(other)));
  other = {};
  other.network = isolation::Network::kNone;
  EXPECT_FALSE(hasKeeper(createOne(other)));
  EXPECT_EQ(registryReady(), 1U);
  EXPECT_TRUE(hasKeeper(createOne()));
}

TEST_F(ReadySandboxesTest, TheyTakeNoCapacity) {
  restart(/*capacity=*/3);
  keepReady(4);
  (void)use();
  (void)use();
  ASSERT_TRUE(readyCount(2));
  EXPECT_EQ(list().size(), 2U);
  const auto created = create(request(5));
  EXPECT_EQ(created.sandboxes.size(), 1U);
  EXPECT_EQ(created.rejected, 4U);
}

TEST_F(ReadySandboxesTest, AKeyFindsTheOneThatWasTaken) {
  (void)use();
  ASSERT_TRUE(readyCount(1));
  auto wanted = request();
  wanted.key = "k";
  wanted.fingerprint = "f";
  const PooledPtr first = create(wanted).sandboxes.at(0);
  EXPECT_TRUE(hasKeeper(first));
  EXPECT_EQ(create(wanted).sandboxes.at(0), first);
  restart();
  EXPECT_EQ(create(wanted).sandboxes.at(0)->record.id, first->record.id);
}

TEST_F(ReadySandboxesTest, ShutdownWaitsForTheirEnd) {
  (void)use();
  (void)use();  // and at once, while another may be in the making
  loop_->await(registry_->shutdown());
  EXPECT_EQ(registryReady(), 0U);
  EXPECT_TRUE(marks().empty());
  EXPECT_EQ(keepersAlive(), 0U);
}

TEST_F(ReadySandboxesTest, NobodyUsesThemForAMinuteAndTheyGo) {
  const PooledPtr used = use();
  ASSERT_TRUE(readyCount(1));
  tickIn(ReadySandboxes::kMemoryMs - 1'000);
  EXPECT_EQ(registryReady(), 1U);
  tickIn(ReadySandboxes::kMemoryMs + 1'000);
  EXPECT_EQ(registryReady(), 0U);
  EXPECT_TRUE(eventually([&] { return entriesIn("sandboxes") == 1 && entriesIn("trash") == 0; }));
  EXPECT_TRUE(slotComesFree(1));
}

TEST_F(ReadySandboxesTest, AnEarlierHostsAreSwept) {
  (void)use();
  (void)use();
  ASSERT_TRUE(readyCount(2));
  const std::vector<fs::path> left = marks();
  close();
  // One of them was just being taken: its record is written and not yet in force.
  std::ofstream(left.at(0)) << R"({"id":")" << left.at(0).parent_path().filename().string()
                            << R"("})";
  open();
  EXPECT_EQ(list().size(), 2U);
  EXPECT_TRUE(marks().empty());
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
  EXPECT_EQ(entriesIn("sandboxes"), 2U);
  const auto slot = [](const fs::path& mark) {
    return std::stoul(mark.extension().string().substr(1));
  };
  EXPECT_TRUE(slotComesFree(static_cast<uint32_t>(std::min(slot(left[0]), slot(left[1])))));
}

TEST_F(ReadySandboxesTest, OneOfAnOlderImageIsNotGivenOut) {
  openWithMachine();
  keepReady(1);
  const PooledPtr used = use();
  ASSERT_TRUE(readyCount(1));
  (void)dir_.write("machine/usr/bin/tool", "x");
  ASSERT_TRUE(images_->refresh());
  const PooledPtr next = createOne();
  EXPECT_NE(next->record.imageVersion, used->record.imageVersion);
  EXPECT_FALSE(hasKeeper(next));
  EXPECT_TRUE(eventually([&] { return entriesIn("trash") == 0; }));
}

}  // namespace
}  // namespace cay::sandbox
