#include "engine/gpu_files.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "engine/fake_gpus_fixture.h"
#include "engine/gpus.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

TEST(Gpus, EachIsGivenToOneAtATime) {
  Gpus gpus({{.model = "x", .minor = 0}, {.model = "x", .minor = 2}, {.model = "x", .minor = 5}});
  EXPECT_THAT(gpus.take(2).value(), ElementsAre(0, 2));
  EXPECT_FALSE(gpus.take(2));
  EXPECT_THAT(gpus.take(1).value(), ElementsAre(5));
  EXPECT_FALSE(gpus.claim({2}));
  gpus.release({2, 7});
  EXPECT_FALSE(gpus.claim({2, 7})) << "there is no such GPU";
  EXPECT_TRUE(gpus.claim({2}));
  EXPECT_FALSE(gpus.claim({2}));
  EXPECT_FALSE(gpus.take(1));
  EXPECT_TRUE(gpus.claim({}));
}

class GpuFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make device nodes";
    gpus_.emplace(2);
  }
  std::string refusal() {
    const auto files = gpuFiles(gpus_->places(), {0});
    return files ? "" : files.error().message;
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    const auto files = gpuFiles(gpus_->places(), {0});
    if (!files) return {files.error().message};
    for (const isolation::Bind& bind : files->binds) {
      EXPECT_TRUE(bind.readOnly && bind.isFile) << bind.at;
      EXPECT_EQ(bind.source, fs::canonical(bind.source)) << "there is no link in it";
      out.push_back(bind.at);
    }
    return out;
  }

  std::optional<FakeGpus> gpus_;
};

TEST_F(GpuFilesTest, NodesAreThoseOfTheGivenGpusAndOfAll) {
  const auto at = [&](const char* name) { return (gpus_->folder() / "dev" / name).string(); };
  EXPECT_THAT(gpuFiles(gpus_->places(), {1})->devices,
              ElementsAre(at("nvidia1"), at("nvidiactl"), at("nvidia-uvm")));
  EXPECT_THAT(gpuFiles(gpus_->places(), {0, 1})->devices,
              ElementsAre(at("nvidia0"), at("nvidia1"), at("nvidiactl"), at("nvidia-uvm")));
  gpus_->write("dev/nvidia-uvm-tools", "");
  EXPECT_EQ(gpuFiles(gpus_->places(), {0})->devices.back(), at("nvidia-uvm-tools"));
  fs::remove(at("nvidia-uvm"));
  EXPECT_THAT(refusal(), HasSubstr("/dev/nvidia-uvm: `nvidia-modprobe -u -c 0`"));
}

TEST_F(GpuFilesTest, LibrariesAreThoseOfTheDriversVersion) {
  gpus_->library("libnvidia-ml", "x");
  gpus_->library("libGLX_nvidia", "draws");
  gpus_->write("root/usr/lib/x86_64-linux-gnu/libcuda.so.535.1.2", "older");
  fs::create_symlink("libcuda.so.1", gpus_->libraries() / "libcuda.so");
  fs::create_symlink("libcuda.so.535.1.2", gpus_->libraries() / "libcuda.so.2");
  fs::create_symlink("nowhere", gpus_->libraries() / "libnvidia-cfg.so.1");
  gpus_->write("root/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.4", "of somebody else");
  gpus_->write("root/usr/local/nvidia/lib64/libcuda.so.580.159.04", "another");
  gpus_->write("root/usr/local/nvidia/lib64/libnvidia-gpucomp.so.580.159.04", "x");
  EXPECT_THAT(names(),
              UnorderedElementsAre("/run/nvidia/lib64/libcuda.so.580.159.04",
                                   "/run/nvidia/lib64/libcuda.so.1", "/run/nvidia/lib64/libcuda.so",
                                   "/run/nvidia/lib64/libnvidia-ml.so.580.159.04",
                                   "/run/nvidia/lib64/libnvidia-ml.so.1",
                                   "/run/nvidia/lib64/libnvidia-gpucomp.so.580.159.04",
                                   "/run/nvidia/bin/nvidia-smi"));
  const auto files = gpuFiles(gpus_->places(), {0});
  for (const isolation::Bind& bind : files->binds) {
    if (!bind.at.contains("libcuda")) continue;
    EXPECT_EQ(bind.source, gpus_->libraries() / "libcuda.so.580.159.04") << bind.at;
  }
}

TEST_F(GpuFilesTest, AScriptThatLeadsToTheProgramIsNotTaken) {
  const fs::path local = gpus_->folder() / "root/usr/local/nvidia/bin";
  fs::create_directories(local);
  fs::rename(gpus_->folder() / "root/usr/bin/nvidia-smi", local / "nvidia-smi");
  gpus_->write("root/usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi\n");
  EXPECT_EQ(gpuFiles(gpus_->places(), {0})->binds.back().source, local / "nvidia-smi");
}

TEST_F(GpuFilesTest, WithoutTheDriverThereIsNothingToCompute) {
  fs::remove(gpus_->folder() / "root/usr/bin/nvidia-smi");
  EXPECT_EQ(refusal(), "") << "it is only for people";
  gpus_->write("proc/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat\n");
  EXPECT_THAT(refusal(), HasSubstr("libcuda.so.1 of the driver 535.104.05"));
  gpus_->write("proc/version", "nonsense\n");
  EXPECT_THAT(refusal(), HasSubstr("no version of the driver"));
  fs::remove(gpus_->folder() / "proc/version");
  EXPECT_THAT(refusal(), HasSubstr("version"));
}

}  // namespace
}  // namespace cay::engine
