#include "engine/flavors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

Machine small() {
  return {.cpus = 2, .memoryBytes = 24 * kGiB, .gpus = {}};
}

Machine withGpus(size_t count, const std::string& model) {
  return {.cpus = 16, .memoryBytes = 128 * kGiB, .gpus = std::vector(count, Gpu{.model = model})};
}

TEST(FlavorsTest, CpuFlavorsFollowTheMachine) {
  const Flavors flavors = Flavors::ofMachine(small());
  ASSERT_EQ(flavors.all().size(), 4U);
  const auto basic = flavors.find("cpu-basic");
  ASSERT_TRUE(basic);
  EXPECT_EQ(basic->prettyName, "CPU Basic");
  EXPECT_EQ(basic->resources,
            (Resources{.milliCpus = 2000, .memoryBytes = 1536 * kMiB, .pids = 512}));
  const auto xl = flavors.find("cpu-xl");
  ASSERT_TRUE(xl);
  EXPECT_EQ(xl->resources.milliCpus, 2000U) << "no more than there are";
  EXPECT_EQ(xl->resources.memoryBytes, 12 * kGiB);
  EXPECT_EQ(xl->resources.pids, 4096U);
}

TEST(FlavorsTest, AHundredBasicJobsFitTheSmallMachine) {
  const Flavors flavors = Flavors::ofMachine(small());
  EXPECT_GE(flavors.promisedMemory() / flavors.find("cpu-basic")->resources.memoryBytes, 100U);
  EXPECT_EQ(flavors.maxStarting(), 4U);
}

TEST(FlavorsTest, NoFlavorIsLargerThanTheMachine) {
  for (const Machine& machine :
       {Machine{.cpus = 1, .memoryBytes = 256 * kMiB, .gpus = {}}, small(),
        Machine{.cpus = 256, .memoryBytes = 4096 * kGiB, .gpus = {}}, withGpus(8, "NVIDIA H200")}) {
    for (const Flavor& flavor : Flavors::ofMachine(machine).all()) {
      EXPECT_LE(flavor.resources.memoryBytes, machine.memoryBytes) << flavor.name;
      EXPECT_LE(flavor.resources.milliCpus, machine.cpus * 1000) << flavor.name;
      EXPECT_LE(flavor.resources.gpus, machine.gpus.size()) << flavor.name;
      EXPECT_GT(flavor.resources.milliCpus, 0U) << flavor.name;
      EXPECT_GT(flavor.resources.memoryBytes, 0U) << flavor.name;
    }
  }
}

TEST(FlavorsTest, GpusAreOfferedByTheirNameWhereTheyAre) {
  const Flavors two = Flavors::ofMachine(withGpus(2, "NVIDIA H200"));
  EXPECT_EQ(two.gpus(), 2U);
  for (const char* name : {"h200", "h200x2", "gpu", "gpux2"}) EXPECT_TRUE(two.find(name)) << name;
  for (const char* name : {"h200x4", "gpux4", "t4-small", "a100-large"}) {
    const auto refused = two.find(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("this machine has 2x NVIDIA H200"));
  }
  EXPECT_EQ(two.find("h200x2")->gpuModel, "NVIDIA H200");
  EXPECT_EQ(two.find("h200x2")->resources.gpus, 2U);
  EXPECT_EQ(two.find("h200x2")->resources.memoryBytes, 64 * kGiB);

  const Flavors l40 = Flavors::ofMachine(withGpus(1, "NVIDIA L40S"));
  EXPECT_TRUE(l40.find("l40sx1"));
  EXPECT_FALSE(l40.find("l4x1"));
  EXPECT_TRUE(Flavors::ofMachine(withGpus(1, "NVIDIA L4")).find("l4x1"));
  EXPECT_TRUE(Flavors::ofMachine(withGpus(1, "NVIDIA A100-SXM4-80GB")).find("a100-large"));
  EXPECT_TRUE(Flavors::ofMachine(withGpus(1, "Tesla T4")).find("t4-medium"));
  EXPECT_TRUE(Flavors::ofMachine(withGpus(1, "NVIDIA GeForce RTX 4090")).find("gpu"));
}

TEST(FlavorsTest, WhatIsNotThereIsSaid) {
  const Flavors flavors = Flavors::ofMachine(small());
  const auto gpu = flavors.find("a100-large");
  ASSERT_FALSE(gpu);
  EXPECT_THAT(gpu.error().message, HasSubstr("this machine has no GPU"));
  const auto unknown = flavors.find("cpu-huge");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_THAT(unknown.error().message,
              HasSubstr("'cpu-huge' is unknown here; there are cpu-basic"));
}

TEST(FlavorsTest, AFileChangesAndAddsFlavors) {
  const auto flavors = Flavors::parse(R"({"memoryFactor": 2.5, "maxStarting": 9, "flavors": [
      {"name": "cpu-basic", "memoryMb": 256},
      {"name": "tiny", "prettyName": "Tiny", "cpus": 0.5, "memoryMb": 64, "diskMb": 100, "pids": 32}
    ]})",
                                      small());
  ASSERT_TRUE(flavors) << flavors.error().message;
  EXPECT_EQ(flavors->promisedMemory(), 60 * kGiB);
  EXPECT_EQ(flavors->maxStarting(), 9U);
  EXPECT_EQ(flavors->all().size(), 5U);
  EXPECT_EQ(flavors->find("cpu-basic")->resources.memoryBytes, 256 * kMiB);
  EXPECT_EQ(flavors->find("cpu-basic")->resources.milliCpus, 2000U);
  EXPECT_EQ(flavors->find("tiny")->resources, (Resources{.milliCpus = 500,
                                                         .memoryBytes = 64 * kMiB,
                                                         .diskBytes = 100 * kMiB,
                                                         .pids = 32,
                                                         .gpus = 0}));
  EXPECT_EQ(flavors->find("tiny")->prettyName, "Tiny");

  const auto mapped = Flavors::parse(R"({"flavors": [{"name": "a100-large", "gpus": 1}]})",
                                     withGpus(1, "NVIDIA H200"));
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->find("a100-large")->gpuModel, "NVIDIA H200") << "and its true name is shown";
}

TEST(FlavorsTest, MistakesInAFileAreNamed) {
  const struct {
    const char* text;
    const char* named;
  } cases[] = {
      {"", "JSON"},
      {"[]", "object"},
      {R"({"memoryfactor": 2})", "memoryfactor"},
      {R"({"memoryFactor": 0})", "memoryFactor"},
      {R"({"maxStarting": 0})", "maxStarting"},
      {R"({"flavors": {}})", "flavors"},
      {R"({"flavors": [1]})", "flavors"},
      {R"({"flavors": [{}]})", "name"},
      {R"({"flavors": [{"name": 1}]})", "name"},
      {R"({"flavors": [{"name": "x", "ram": 1}]})", "ram"},
      {R"({"flavors": [{"name": "x", "cpus": -1}]})", "cpus"},
      {R"({"flavors": [{"name": "x", "memoryMb": 0}]})", "memoryMb"},
      {R"({"flavors": [{"name": "x", "gpus": 1}]})", "gpus"},  // there is none
  };
  for (const auto& [text, named] : cases) {
    const auto refused = Flavors::parse(text, small());
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr(named));
  }
}

TEST(FlavorsTest, AFileMayBeMissing) {
  const cay::testing::TempDir dir;
  const auto none = Flavors::read((dir.path() / "flavors.json").string(), small());
  ASSERT_TRUE(none);
  EXPECT_EQ(none->all(), Flavors::ofMachine(small()).all());
  const std::string file = dir.write("flavors.json", "{]");
  const auto broken = Flavors::read(file, small());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("flavors.json"));
  EXPECT_FALSE(Flavors::read(dir.path().string(), small())) << "a folder is no file";
}

TEST(MachineTest, IsWhatItIs) {
  const Machine here = thisMachine();
  EXPECT_GE(here.cpus, 1U);
  EXPECT_GT(here.memoryBytes, 64 * kMiB);

  const cay::testing::TempDir dir;
  int minor = 2;
  for (const char* gpu : {"0000:01:00.0", "0000:02:00.0"}) {
    std::filesystem::create_directory(dir.path() / gpu);
    (void)dir.write(std::string(gpu) + "/information",
                    "IRQ:  \t 30\nModel: \t\t NVIDIA H200\nGPU UUID: x\nDevice Minor: \t " +
                        std::to_string(--minor) + "\n");
  }
  std::filesystem::create_directory(dir.path() / "0000:03:00.0");
  (void)dir.write("0000:03:00.0/information", "Model: \t\t NVIDIA H200\n");
  EXPECT_EQ(thisMachine(dir.path().c_str()).gpus,
            (std::vector<Gpu>{{.model = "NVIDIA H200", .minor = 0},
                              {.model = "NVIDIA H200", .minor = 1}}))
      << "in their order, without those that nobody can reach";
  EXPECT_TRUE(thisMachine((dir.path() / "none").c_str()).gpus.empty());
}

}  // namespace
}  // namespace cay::engine
