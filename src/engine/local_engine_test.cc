// Real jobs behind real walls.
#include "engine/local_engine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "base/text.h"
#include "engine/local_engine_fixture.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// How many processes have this word in their arguments.
size_t processesWith(const std::string& word) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto text = sys::readFile((entry.path() / "cmdline").c_str());
    if (parseUint(entry.path().filename().string()) && text && text->contains(word)) ++count;
  }
  return count;
}

TEST_F(LocalEngineTest, ACommandRunsToItsEnd) {
  open();
  JobSpec asked = job("exec 2>&1; echo hello; echo $JOB_ID $A $KEY >&2; cat /etc/hosts; pwd");
  asked.env = {{"A", "1"}};
  asked.secrets = {{"KEY", "hidden"}};
  const JobSpec spec = submit(asked);
  const Status end = awaitEnd(spec.id);
  EXPECT_EQ(stageName(end.stage), "COMPLETED") << end.message;
  EXPECT_EQ(end.exitCode, 0);
  EXPECT_EQ(end.image, "host");
  EXPECT_GT(end.startedAtMs, 0);
  EXPECT_GE(end.finishedAtMs, end.startedAtMs);
  EXPECT_EQ(told_.last(spec.id), end);
  const auto said = lines(spec.id);
  EXPECT_THAT(said.front(), StartsWith("===== Job started at 20"));
  EXPECT_THAT(said, Contains("hello"));
  EXPECT_THAT(said, Contains(spec.id + " 1 hidden"));
  EXPECT_THAT(said, Contains(HasSubstr("127.0.0.1 localhost")));
  EXPECT_EQ(said.back(), "/");
  EXPECT_EQ(lines(spec.id, 1), std::vector<std::string>{"/"});
}

TEST_F(LocalEngineTest, TheEndIsToldAsItWas) {
  open();
  const JobSpec three = submit(job("exit 3"));
  const JobSpec killed = submit(job("kill -9 $$"));
  JobSpec slow = job("sleep 100");
  slow.timeoutMs = 1000;
  submit(slow);
  JobSpec greedy = job("exec python3 -c 'b\"x\" * (300 << 20)'");
  greedy.flavor.clear();
  greedy.resources = {.milliCpus = 1000, .memoryBytes = 64ULL << 20, .pids = 64};
  submit(greedy);
  JobSpec missing = job("");
  missing.command = {"/no/such/program"};
  submit(missing);
  EXPECT_EQ(awaitEnd(three.id).message, "Job failed with exit code: 3");
  EXPECT_EQ(status(three.id).exitCode, 3);
  EXPECT_EQ(stageName(status(three.id).stage), "ERROR");
  EXPECT_EQ(awaitEnd(killed.id).message, "killed by signal 9");
  EXPECT_EQ(awaitEnd(slow.id).message, "timed out after 1 s");
  EXPECT_EQ(awaitEnd(greedy.id).message, "out of memory (limit 64 MiB)");
  EXPECT_THAT(awaitEnd(missing.id).message, StartsWith("start: "));
  EXPECT_EQ(stageName(status(missing.id).stage), "ERROR");
}

TEST_F(LocalEngineTest, AFailedCommandIsTriedAgainWithAFreshFolder) {
  open();
  JobSpec asked =
      job("echo try; test -e /root/seen && echo stale; touch /root/seen; "
          "n=$(cat /data/n 2>/dev/null || echo 0); echo $((n+1)) >/data/n; exit $((2-n))");
  asked.attempts = 3;
  asked.volumes = {{.type = VolumeRef::Type::kBucket,
                    .source = "me/tries",
                    .at = "/data",
                    .path = {},
                    .revision = {}}};
  const JobSpec spec = submit(asked);
  const Status end = awaitEnd(spec.id);
  EXPECT_EQ(stageName(end.stage), "COMPLETED") << end.message;
  EXPECT_EQ(end.attempt, 3U);
  EXPECT_THAT(lines(spec.id), ElementsAre(StartsWith("====="), "try", "try", "try"));
  bool second = false;
  for (const Status& told : told_.all(spec.id)) {
    second =
        second || (told.stage == Stage::kRunning && told.message.starts_with("attempt 2 of 3"));
  }
  EXPECT_TRUE(second);
}

TEST_F(LocalEngineTest, CancelKillsTheWholeTree) {
  open();
  const std::string word = "424" + std::to_string(::getpid());
  const JobSpec spec =
      submit(job("setsid sleep " + word + " & sleep " + word + " & sleep " + word));
  awaitStage(spec.id, Stage::kRunning);
  ASSERT_TRUE(eventually([&] { return processesWith(word) >= 3; }));
  ASSERT_TRUE(loop_->await(engine_->end(spec.id, Stage::kCanceled, "enough")));
  EXPECT_EQ(processesWith(word), 0U) << "it completes when nothing runs any more";
  EXPECT_EQ(status(spec.id).message, "enough");
  EXPECT_EQ(stageName(status(spec.id).stage), "CANCELED");
}

TEST_F(LocalEngineTest, WhatACommandLeavesBehindIsKilled) {
  open();
  const std::string word = "425" + std::to_string(::getpid());
  const JobSpec spec = submit(job("setsid sleep " + word + " >/dev/null 2>&1 & echo over"));
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED");
  EXPECT_TRUE(eventually([&] { return processesWith(word) == 0; }));
}

TEST_F(LocalEngineTest, VolumesAreSeenInsideAndReadOnlyIsReadOnly) {
  open();
  fs::create_directories(fs::path(state()) / "volumes/models/a/b");
  std::ofstream(fs::path(state()) / "volumes/models/a/b/w") << "weights\n";
  JobSpec asked =
      job("cat /m/w; touch /m/x 2>/dev/null && echo wrote; echo kept >/data/f; "
          "stat -c %u /data/f; /server/sbx-server --version");
  const auto volume = [](VolumeRef::Type type, const char* source, const char* at) {
    return VolumeRef{.type = type, .source = source, .at = at, .path = {}, .revision = {}};
  };
  asked.volumes = {volume(VolumeRef::Type::kModel, "a/b", "/m"),
                   volume(VolumeRef::Type::kBucket, "me/b", "/data"),
                   volume(VolumeRef::Type::kBucket, "huggingface/sbx-server", "/server")};
  const JobSpec spec = submit(asked);
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  const auto said = lines(spec.id);
  ASSERT_THAT(said, SizeIs(4));
  EXPECT_EQ(said[1], "weights");
  EXPECT_EQ(said[2], "0");
  EXPECT_THAT(said[3], HasSubstr("cay-host"));
  EXPECT_EQ(sys::readFile((state() + "/volumes/buckets/me/b/f").c_str()).value(), "kept\n");
  JobSpec lost = job("true");
  lost.volumes = {volume(VolumeRef::Type::kDataset, "no/where", "/d")};
  submit(lost);
  EXPECT_THAT(awaitEnd(lost.id).message,
              ::testing::AllOf(StartsWith("volumes: dataset 'no/where' is not here"),
                               HasSubstr("volumes/datasets/no/where")));
}

TEST_F(LocalEngineTest, AnAliasIsTold) {
  open();
  layers::ImageIndex index(state() + "/images");
  ASSERT_TRUE(index.setAlias("python:3.12", "host"));
  JobSpec asked = job("true");
  asked.image = "python:3.12";
  submit(asked);
  EXPECT_EQ(stageName(awaitEnd(asked.id).stage), "COMPLETED") << status(asked.id).message;
  EXPECT_EQ(status(asked.id).image, "host (alias of python:3.12)");
}

TEST_F(LocalEngineTest, AnImageThatIsNotHereIsBroughtOnceForAll) {
  const std::string script =
      dir_.write("pull", "#!/bin/sh\necho x >>" + (dir_.path() / "pulls").string() +
                             "; sleep 0.5; echo 'the registry cannot be reached' >&2; exit 1\n");
  fs::permissions(script, fs::perms{0700});
  options_.pullCommand = {script};
  open();
  JobSpec one = job("true");
  one.image = "nobody/nothing:1";
  JobSpec two = one;
  two.id += "x";
  submit(one);
  submit(two);
  EXPECT_THAT(awaitEnd(one.id).message,
              ::testing::AllOf(StartsWith("image: "), HasSubstr("the registry cannot be reached"),
                               HasSubstr("cay image alias nobody/nothing:1 host")));
  EXPECT_EQ(stageName(awaitEnd(two.id).stage), "ERROR");
  EXPECT_EQ(sys::readFile((dir_.path() / "pulls").c_str()).value(), "x\n");
  const JobSpec space = [&] {
    JobSpec out = job("true");
    out.image = "space:abc";
    return submit(out);
  }();
  EXPECT_THAT(awaitEnd(space.id).message, HasSubstr("Space"));
}

TEST_F(LocalEngineTest, ACancelledJobDoesNotWaitForItsImage) {
  const std::string script = dir_.write("pull", "#!/bin/sh\nexec sleep 1000\n");
  fs::permissions(script, fs::perms{0700});
  options_.pullCommand = {script};
  open();
  JobSpec asked = job("true");
  asked.image = "nobody/nothing:1";
  submit(asked);
  ASSERT_TRUE(eventually([&] { return status(asked.id).message.starts_with("bringing"); }));
  ASSERT_TRUE(loop_->await(engine_->end(asked.id, Stage::kCanceled, "enough")));
  EXPECT_EQ(stageName(status(asked.id).stage), "CANCELED");
}

TEST_F(LocalEngineTest, WhatCanNeverRunIsRefused) {
  open();
  const auto refusal = [&](const JobSpec& spec) {
    const auto submitted = loop_->await(engine_->submit(spec));
    EXPECT_FALSE(submitted);
    return submitted ? std::string() : submitted.error().message;
  };
  JobSpec spec = job("true");
  spec.flavor = "nonsense";
  EXPECT_THAT(refusal(spec), HasSubstr("cpu-basic"));
  spec = job("true");
  spec.resources.memoryBytes = 1ULL << 60;
  EXPECT_THAT(refusal(spec), HasSubstr("less than"));
  spec = job("true");
  spec.id = "../x";
  EXPECT_FALSE(refusal(spec).empty());
  spec = job("true");
  spec.command.clear();
  EXPECT_FALSE(refusal(spec).empty());
  spec = job("true");
  spec.env = {{"A=B", "x"}};
  EXPECT_FALSE(refusal(spec).empty());
  spec = job("true");
  spec.kind = Kind::kDedicated;
  EXPECT_FALSE(refusal(spec).empty()) << "a server without a token";
  spec = submit(job("true"));
  EXPECT_FALSE(refusal(spec).empty()) << "the same again";
}

TEST_F(LocalEngineTest, JobsWaitForTheirTurnAndForTheirDeadline) {
  options_.mostJobs = 1;
  open();
  const JobSpec first = submit(job("sleep 1000"));
  const JobSpec second = submit(job("true"));
  JobSpec late = job("true");
  late.deadlineMs = wallMs() + 1500;
  submit(late);
  ASSERT_TRUE(eventually([&] {
    return status(second.id).message.starts_with("waiting: 1 of 2 (");
  })) << status(second.id).message;
  EXPECT_THAT(awaitEnd(late.id).message, HasSubstr("deadline"));
  EXPECT_EQ(stageName(status(late.id).stage), "ERROR");
  ASSERT_TRUE(loop_->await(engine_->end(first.id, Stage::kCanceled, "")));
  EXPECT_EQ(stageName(awaitEnd(second.id).stage), "COMPLETED");
  EXPECT_EQ(status(second.id).message, "");
}

TEST_F(LocalEngineTest, TwoJobsOfAGroupFindEachOther) {
  open();
  JobSpec server =
      job("exec python3 -c 'import socket; s=socket.create_server((\"\",8080)); c,_=s.accept(); "
          "c.sendall(b\"hi\\n\"); c.close()'");
  JobSpec client = job(
      "while ! python3 -c 'import os,socket; s=socket.create_connection((os.environ["
      "\"HF_NETWORK_GROUP_PREFIX\"]+\"first\",8080),2); print(s.recv(9).decode())' 2>/dev/null; "
      "do sleep 0.1; done");
  for (JobSpec* spec : {&server, &client}) {
    spec->group = "me/red";
    spec->groupName = "red";
  }
  server.aliases = {"first"};
  submit(server);
  awaitStage(server.id, Stage::kRunning);
  submit(client);
  EXPECT_EQ(stageName(awaitEnd(client.id).stage), "COMPLETED") << status(client.id).message;
  EXPECT_THAT(lines(client.id), Contains("hi"));
}

TEST_F(LocalEngineTest, WhatItUsesIsTold) {
  open();
  const JobSpec spec = submit(job("while true; do :; done"));
  awaitStage(spec.id, Stage::kRunning);
  Result<Usage> usage = fail(Code::kInternal, "");
  ASSERT_TRUE(eventually([&] {
    usage = loop_->await(engine_->usage(spec.id));
    return usage && usage->cpuMs > 0 && usage->memoryBytes > 0;
  })) << (usage ? std::to_string(usage->cpuMs) : usage.error().message);
  EXPECT_EQ(usage->memoryLimit, engine_->flavors().find("cpu-basic")->resources.memoryBytes);
}

TEST_F(LocalEngineTest, APortInsideCanBeDialled) {
  open();
  const JobSpec spec =
      submit(job("exec python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",8080)); "
                 "s.listen(); "
                 "c,_=s.accept(); c.sendall(b\"hi\"); c.close()'"));
  awaitStage(spec.id, Stage::kRunning);
  ASSERT_TRUE(eventually([&] { return loop_->await(engine_->dial(spec.id, 8080)).has_value(); }));
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED");
}

TEST_F(LocalEngineTest, ManyAtOnceAreTakenAndAHundredRun) {
  open();
  constexpr int kJobs = 500;
  constexpr int64_t kPatienceMs = 180'000;
  std::vector<std::string> ids;
  for (int i = 0; i < kJobs; ++i) ids.push_back(submit(job("exec sleep 1000")).id);
  // Of these stages together, in one look: jobs go on from one to the next meanwhile.
  const auto count = [&](const std::set<Stage>& stages) {
    return loop_->call([&] {
      return std::ranges::count_if(
          ids, [&](const std::string& id) { return stages.contains(engine_->inspect(id)->stage); });
    });
  };
  const int64_t until = monotonicMs() + kPatienceMs;
  while (count({Stage::kRunning}) < 100 && monotonicMs() < until) {
    std::this_thread::sleep_for(Millis(50));
  }
  EXPECT_GE(count({Stage::kRunning}), 100);
  EXPECT_EQ(count({Stage::kRunning, Stage::kScheduling}), kJobs);
  EXPECT_TRUE(eventually([&] { return status(ids.back()).message.starts_with("waiting: "); }));
}

TEST_F(LocalEngineTest, NothingIsLeftOver) {
  open();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(submit(job(i % 2 == 0 ? "true" : "sleep 1000")).id);
  awaitStage(ids[1], Stage::kRunning);
  loop_->await(engine_->shutdown(Engine::Jobs::kEnd));
  for (const std::string& id : ids) EXPECT_TRUE(isTerminal(status(id).stage)) << id;
  EXPECT_TRUE(eventually([&] { return fs::is_empty(state() + "/sandboxes/sandboxes"); }));
  EXPECT_TRUE(eventually([&] { return fs::is_empty(state() + "/sandboxes/trash"); }));
  EXPECT_FALSE(fs::exists(state() + "/net.sock"));
  for (const char* controller : {"pids", "memory", "unified"}) {
    const fs::path groups = fs::path("/sys/fs/cgroup") / controller;
    if (!fs::exists(groups)) continue;
    const auto name = sys::readFile((state() + "/sandboxes/name").c_str()).value();
    EXPECT_FALSE(fs::exists(groups / std::string(trim(name)))) << groups;
  }
  for (const std::string& id : ids) ASSERT_TRUE(loop_->await(engine_->forget(id)));
  EXPECT_TRUE(fs::is_empty(state() + "/jobs"));
}

}  // namespace
}  // namespace cay::engine
