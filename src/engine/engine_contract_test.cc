// What every engine promises (engine.h), tried with each of them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "engine/fake_engine_fixture.h"
#include "engine/local_engine.h"
#include "engine/local_engine_fixture.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::IsEmpty;

// An engine whose jobs say "hello" and then run until they are let go.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual Engine& engine() = 0;
  // Has the job come to RUNNING and say its word, where it does not by itself. On the loop.
  virtual void letRun(const std::string& id) = 0;
  // Has it end well. On the loop.
  virtual void letGo(const std::string& id) = 0;
};

class FakeBench final : public Bench {
 public:
  explicit FakeBench(boost::asio::io_context& /*io*/) {}
  Engine& engine() override { return engine_; }
  void letRun(const std::string& id) override {
    engine_.start(id);
    engine_.say(id, "hello");
  }
  void letGo(const std::string& id) override { engine_.finish(id, Stage::kCompleted); }

 private:
  FakeEngine engine_;
};

class LocalBench final : public Bench {
 public:
  explicit LocalBench(boost::asio::io_context& io) {
    const fs::path root = fs::canonical(dir_.path());
    fs::create_directories(root / "state");
    SharedImages::lend(root / "state");
    engine_ = std::make_unique<LocalEngine>(io, testOptions(root / "state", root / "leases"));
  }
  ~LocalBench() override {
    engine_.reset();
    SharedImages::takeBack(fs::canonical(dir_.path()) / "state");
  }
  Engine& engine() override { return *engine_; }
  void letRun(const std::string& /*id*/) override {}
  void letGo(const std::string& id) override {
    const fs::path bucket = fs::canonical(dir_.path()) / "state/volumes/buckets/me" / id;
    std::ofstream(bucket / "go") << "go";
  }

 private:
  testing::TempDir dir_;
  std::unique_ptr<LocalEngine> engine_;
};

struct Kindof {
  const char* name;
  bool needsRoot;
  std::function<std::unique_ptr<Bench>(boost::asio::io_context&)> make;
};

class EngineContract : public ::testing::TestWithParam<Kindof> {
 protected:
  void SetUp() override {
    if (GetParam().needsRoot && ::geteuid() != 0) GTEST_SKIP() << "only root can raise all walls";
    bench_ = GetParam().make(loop_.io());
  }
  void TearDown() override {
    if (!bench_) return;
    loop_.await(engine().shutdown(Engine::Jobs::kEnd));
    loop_.stop();
  }

  Engine& engine() { return bench_->engine(); }
  void open(std::vector<JobSpec> known = {}) {
    const auto opened = loop_.await(engine().open(std::move(known), told_));
    ASSERT_TRUE(opened) << opened.error().message;
  }
  static JobSpec job(Pairs labels = {}) {
    JobSpec spec;
    spec.id = "j" + randomHex(6);
    spec.ns = "me";
    spec.image = "host";
    spec.command = {"/bin/sh", "-c", "echo hello; while [ ! -e /data/go ]; do sleep 0.02; done"};
    spec.flavor = "cpu-basic";
    spec.labels = std::move(labels);
    spec.volumes = {{.type = VolumeRef::Type::kBucket,
                     .source = "me/" + spec.id,
                     .at = "/data",
                     .path = {},
                     .revision = {}}};
    return spec;
  }
  std::string submit(const JobSpec& spec) {
    const auto submitted = loop_.await(engine().submit(spec));
    EXPECT_TRUE(submitted) << submitted.error().message;
    return spec.id;
  }
  std::string running(const JobSpec& spec) {
    const std::string id = submit(spec);
    loop_.call([&] { bench_->letRun(id); });
    EXPECT_TRUE(eventually([&] { return stage(id) == Stage::kRunning; })) << message(id);
    return id;
  }
  void finish(const std::string& id) {
    loop_.call([&] { bench_->letGo(id); });
    EXPECT_TRUE(eventually([&] { return isTerminal(stage(id)); }));
  }
  Stage stage(const std::string& id) {
    const auto status = loop_.call([&] { return engine().inspect(id); });
    return status ? status->stage : Stage::kScheduling;
  }
  std::string message(const std::string& id) {
    const auto status = loop_.call([&] { return engine().inspect(id); });
    return status ? status->message : status.error().message;
  }
  std::vector<std::string> list(const Pairs& labels) {
    return loop_.call([&] { return engine().list(labels); });
  }
  Result<> end(const std::string& id, Stage stage, std::string why) {
    return loop_.await(engine().end(id, stage, std::move(why)));
  }
  // Lines till the job is over.
  std::vector<std::string> follow(const std::string& id, std::optional<uint64_t> tail = {}) {
    auto stream = loop_.await(engine().logs(id, tail)).value();
    std::vector<std::string> out;
    int64_t last = 0;
    while (true) {
      const bool over = isTerminal(stage(id));
      const auto event = loop_.await(stream->next()).value();
      if (event) {
        EXPECT_GT(event->timeUs, last);
        last = event->timeUs;
        out.push_back(event->text);
      } else if (over && !loop_.await(stream->next()).value()) {
        break;
      } else {
        EXPECT_TRUE(loop_.await(stream->changed(Millis(20'000))));
      }
    }
    loop_.call([&] { stream.reset(); });
    return out;
  }

  testing::LoopThread loop_;
  Told told_;
  std::unique_ptr<Bench> bench_;
};

TEST_P(EngineContract, WhatItNeverHadIsNotFound) {
  open();
  const auto isUnknown = [](const auto& result) {
    return !result && result.error().code == Code::kNotFound;
  };
  EXPECT_TRUE(isUnknown(loop_.call([&] { return engine().inspect("nobody"); })));
  EXPECT_TRUE(isUnknown(end("nobody", Stage::kCanceled, "")));
  EXPECT_TRUE(isUnknown(loop_.await(engine().logs("nobody", std::nullopt))));
  EXPECT_TRUE(isUnknown(loop_.await(engine().dial("nobody", 80))));
  EXPECT_TRUE(isUnknown(loop_.await(engine().usage("nobody"))));
  EXPECT_TRUE(isUnknown(loop_.await(engine().forget("nobody"))));
  EXPECT_THAT(list({}), IsEmpty());
}

TEST_P(EngineContract, AJobRunsSaysItsWordAndEnds) {
  open();
  const std::string id = running(job());
  EXPECT_EQ(told_.last(id).stage, Stage::kRunning) << "the watcher knows what everybody can see";
  EXPECT_GT(told_.last(id).startedAtMs, 0);
  EXPECT_FALSE(told_.last(id).serving);
  finish(id);
  EXPECT_EQ(stage(id), Stage::kCompleted) << message(id);
  EXPECT_EQ(told_.last(id).stage, Stage::kCompleted);
  EXPECT_GT(told_.last(id).finishedAtMs, 0);
  EXPECT_THAT(follow(id), Contains("hello"));
  EXPECT_THAT(follow(id, 1), ElementsAre("hello"));
}

TEST_P(EngineContract, ALogIsFollowedWhileItGrows) {
  open();
  const std::string id = running(job());
  auto stream = loop_.await(engine().logs(id, std::nullopt)).value();
  bool hello = false;
  while (!hello) {
    const auto event = loop_.await(stream->next()).value();
    hello = event && event->text == "hello";
    if (!event) {
      ASSERT_TRUE(loop_.await(stream->changed(Millis(20'000))));
    }
  }
  EXPECT_FALSE(loop_.await(stream->next()).value());
  EXPECT_FALSE(loop_.await(stream->changed(Millis(1)))) << "there is no more yet";
  finish(id);
  EXPECT_TRUE(loop_.await(stream->changed(Millis(20'000))));
  loop_.call([&] { stream.reset(); });
}

TEST_P(EngineContract, AnEndIsToldAtOnceAndHappensOnce) {
  open();
  const std::string id = running(job());
  ASSERT_TRUE(end(id, Stage::kCanceled, "enough"));
  EXPECT_EQ(stage(id), Stage::kCanceled);
  EXPECT_EQ(message(id), "enough");
  ASSERT_TRUE(end(id, Stage::kError, "again"));
  EXPECT_EQ(stage(id), Stage::kCanceled);
  EXPECT_EQ(message(id), "enough");
  EXPECT_EQ(told_.last(id).stage, Stage::kCanceled);
}

TEST_P(EngineContract, TheHubMayEndAJobAsAnError) {
  open();
  const std::string id = running(job());
  ASSERT_TRUE(end(id, Stage::kError, "your client does not trust this hub"));
  EXPECT_EQ(stage(id), Stage::kError);
}

TEST_P(EngineContract, PortsAreReachedWhileItRuns) {
  open();
  const std::string id = running(job());
  const auto closed = loop_.await(engine().dial(id, 8080));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code, Code::kUnreachable);
  EXPECT_TRUE(loop_.await(engine().usage(id)));
  ASSERT_TRUE(end(id, Stage::kCanceled, ""));
  const auto over = loop_.await(engine().dial(id, 8080));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kGone);
  const auto usage = loop_.await(engine().usage(id));
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().code, Code::kGone);
}

TEST_P(EngineContract, JobsAreFoundByTheirLabels) {
  open();
  const std::string first = submit(job({{"team", "red"}, {"kind", "a"}}));
  const std::string second = submit(job({{"team", "red"}}));
  EXPECT_THAT(list({{"team", "red"}}), ElementsAre(first, second));
  EXPECT_THAT(list({{"team", "red"}, {"kind", "a"}}), ElementsAre(first));
  EXPECT_THAT(list({{"team", "blue"}}), IsEmpty());
  loop_.call([&] { engine().relabel(second, {{"team", "blue"}}); });
  EXPECT_THAT(list({{"team", "blue"}}), ElementsAre(second));
  loop_.call([&] { engine().relabel("nobody", {}); });
}

TEST_P(EngineContract, OnlyWhatIsOverIsForgotten) {
  open();
  const std::string id = running(job());
  const auto tooEarly = loop_.await(engine().forget(id));
  ASSERT_FALSE(tooEarly);
  EXPECT_EQ(tooEarly.error().code, Code::kConflict);
  ASSERT_TRUE(end(id, Stage::kCanceled, ""));
  EXPECT_THAT(list({}), ElementsAre(id)) << "it is kept with its log";
  ASSERT_TRUE(loop_.await(engine().forget(id)));
  EXPECT_THAT(list({}), IsEmpty());
  EXPECT_FALSE(loop_.call([&] { return engine().inspect(id); }));
}

TEST_P(EngineContract, WhatItHasNoTraceOfIsAnError) {
  const JobSpec lost = job();
  open({lost});
  EXPECT_EQ(told_.last(lost.id).stage, Stage::kError);
  EXPECT_FALSE(told_.last(lost.id).message.empty());
}

TEST_P(EngineContract, HasFlavors) {
  open();
  EXPECT_TRUE(engine().flavors().find("cpu-basic"));
  EXPECT_FALSE(engine().name().empty());
}

INSTANTIATE_TEST_SUITE_P(All, EngineContract,
                         ::testing::Values(Kindof{"Fake", false,
                                                  [](boost::asio::io_context& io) {
                                                    return std::make_unique<FakeBench>(io);
                                                  }},
                                           Kindof{"Local", true,
                                                  [](boost::asio::io_context& io) {
                                                    return std::make_unique<LocalBench>(io);
                                                  }}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cay::engine
