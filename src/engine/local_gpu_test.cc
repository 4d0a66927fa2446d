// Jobs with GPUs, which are fakes here.
#include <gmock/gmock.h>

#include "engine/fake_gpus_fixture.h"
#include "engine/local_engine_fixture.h"

namespace cay::engine {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;

constexpr char kShowNodes[] = "ls /dev | grep nvidia";

class LocalGpus : public LocalEngineTest {
 protected:
  void SetUp() override {
    LocalEngineTest::SetUp();
    if (IsSkipped()) return;
    gpus_.emplace(2);
    gpus_->lendTo(options_);
  }
  static JobSpec gpuJob(const std::string& script) {
    JobSpec spec = job(script);
    spec.flavor = "gpu";
    return spec;
  }
  // Shows its nodes and stays.
  JobSpec holder() {
    JobSpec spec = submit(gpuJob(std::string(kShowNodes) + "; exec sleep 600"));
    awaitStage(spec.id, Stage::kRunning);
    return spec;
  }
  void cancel(const JobSpec& spec) {
    EXPECT_TRUE(loop_->await(engine_->end(spec.id, Stage::kCanceled, "enough")));
  }

  // Without the line that says when it began.
  std::vector<std::string> said(const std::string& id) {
    std::vector<std::string> out = lines(id);
    if (!out.empty()) out.erase(out.begin());
    return out;
  }

  std::optional<FakeGpus> gpus_;
};

TEST_F(LocalGpus, AJobHasItsGpuWithTheDriverAndNothingElse) {
  open();
  const JobSpec spec = submit(gpuJob(std::string(kShowNodes) + R"(
      head -c 2 /dev/nvidia0 | od -An -tx1
      echo $LD_LIBRARY_PATH
      cat /run/nvidia/lib64/libcuda.so.1
      nvidia-smi smi
      for attempt in 'echo x >/run/nvidia/lib64/libcuda.so.1' 'rm /run/nvidia/lib64/libcuda.so.1' \
          'mknod /dev/nvidia1 c 1 5' 'mknod /root/nvidia1 c 1 5' 'rm /dev/nvidia0' \
          'umount /dev/nvidia0' 'touch /dev/nvidia0'; do
        sh -c "$attempt" 2>/dev/null && echo "possible: $attempt"
      done
      true)"));
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  EXPECT_THAT(said(spec.id), ElementsAre("nvidia-uvm", "nvidia0", "nvidiactl", " 00 00",
                                         "/run/nvidia/lib64", "the driver", "smi"));
}

TEST_F(LocalGpus, AJobWithoutHasNone) {
  open();
  const JobSpec rich = holder();
  const JobSpec spec = submit(job(std::string(kShowNodes) + R"(
      echo "$LD_LIBRARY_PATH"
      ls /run/nvidia /usr/local/nvidia/lib64 2>/dev/null
      for place in /dev /root /tmp /dev/shm; do
        mknod $place/nvidia0 c 1 5 2>/dev/null && head -c1 $place/nvidia0 && echo possible
      done
      true)"));
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  EXPECT_THAT(said(spec.id), ElementsAre(""));
}

TEST_F(LocalGpus, EachHasAnotherOneAndTheNextWaits) {
  open();
  const JobSpec first = holder();
  const JobSpec second = holder();
  const JobSpec third = submit(gpuJob(kShowNodes));
  ASSERT_TRUE(eventually([&] { return status(third.id).message.contains("(GPUs)"); }));
  cancel(first);
  EXPECT_EQ(stageName(awaitEnd(third.id).stage), "COMPLETED") << status(third.id).message;
  cancel(second);
  EXPECT_THAT(said(first.id), ElementsAre("nvidia-uvm", "nvidia0", "nvidiactl"));
  EXPECT_THAT(said(second.id), ElementsAre("nvidia-uvm", "nvidia1", "nvidiactl"));
  EXPECT_EQ(said(third.id), said(first.id)) << "its GPU was free again";
  JobSpec both = gpuJob(kShowNodes);
  both.flavor = "gpux2";
  submit(both);
  awaitEnd(both.id);
  EXPECT_THAT(said(both.id), ElementsAre("nvidia-uvm", "nvidia0", "nvidia1", "nvidiactl"));
}

TEST_F(LocalGpus, TheyStayWithTheirJobsOverARestart) {
  open();
  const JobSpec first = holder();
  const JobSpec second = holder();
  cancel(first);
  close();
  open({first, second});
  awaitStage(second.id, Stage::kRunning);
  const JobSpec third = holder();
  const JobSpec fourth = submit(gpuJob(kShowNodes));
  ASSERT_TRUE(eventually([&] { return status(fourth.id).message.contains("(GPUs)"); }));
  cancel(second);
  awaitEnd(fourth.id);
  cancel(third);
  EXPECT_THAT(said(third.id), ElementsAre("nvidia-uvm", "nvidia0", "nvidiactl"));
  EXPECT_THAT(said(fourth.id), ElementsAre("nvidia-uvm", "nvidia1", "nvidiactl"));
}

TEST_F(LocalGpus, OneThatIsGoneAfterARestartIsToldAndNothingOfTheJobIsLeft) {
  open();
  const JobSpec first = holder();
  close();
  options_.gpus.erase(options_.gpus.begin());
  open({first});
  const Status over = awaitEnd(first.id);
  EXPECT_EQ(stageName(over.stage), "ERROR");
  EXPECT_THAT(over.message, HasSubstr("GPUs are not here any more"));
  EXPECT_TRUE(
      eventually([&] { return std::filesystem::is_empty(state() + "/sandboxes/sandboxes"); }));
}

// Also when the hub was restarted meanwhile.
TEST_F(LocalGpus, TheNextAttemptHasAllThatTheFirstHad) {
  open();
  JobSpec spec =
      gpuJob(std::string(kShowNodes) +
             "; cat /data/file /run/nvidia/lib64/libcuda.so.1; test -e /data/go ||"
             " { touch /data/begun; while ! test -e /data/go; do sleep 0.1; done; exit 1; }");
  spec.attempts = 2;
  spec.volumes = {{.source = "me/data", .at = "/data", .path = {}, .revision = {}}};
  const std::filesystem::path bucket = state() + "/volumes/buckets/me/data";
  std::filesystem::create_directories(bucket);
  std::ofstream(bucket / "file") << "of the bucket\n";
  submit(spec);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(bucket / "begun"); }));
  close();
  open({spec});
  awaitStage(spec.id, Stage::kRunning);
  std::ofstream(bucket / "go") << "";
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  EXPECT_THAT(said(spec.id),
              ElementsAre("nvidia-uvm", "nvidia0", "nvidiactl", "of the bucket", "the driver",
                          "nvidia-uvm", "nvidia0", "nvidiactl", "of the bucket", "the driver"));
}

TEST_F(LocalGpus, WhatIsMissingIsTold) {
  std::filesystem::remove(gpus_->folder() / "dev/nvidia-uvm");
  open();
  const JobSpec spec = submit(gpuJob("true"));
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "ERROR");
  EXPECT_THAT(status(spec.id).message, HasSubstr("nvidia-modprobe"));
  const JobSpec other = submit(job("echo fine"));
  EXPECT_EQ(stageName(awaitEnd(other.id).stage), "COMPLETED");
}

TEST_F(LocalGpus, WithoutGpusTheFlavorIsRefused) {
  options_.gpus.clear();
  options_.flavors = Flavors::ofMachine({.cpus = 2, .memoryBytes = 32ULL << 30, .gpus = {}});
  open();
  const auto submitted = loop_->await(engine_->submit(gpuJob("true")));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Code::kInvalid);
  EXPECT_THAT(submitted.error().message, HasSubstr("this machine has no GPU"));
}

}  // namespace
}  // namespace cay::engine
