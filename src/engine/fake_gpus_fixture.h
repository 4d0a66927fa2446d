// GPUs that are none: harmless devices under the names of theirs, and files for a driver. Needs
// root.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/local_options.h"
#include "sys/mount.h"
#include "sys/namespaces.h"
#include "testing/temp_dir.h"

namespace cay::engine {

class FakeGpus {
 public:
  static constexpr char kVersion[] = "580.159.04";

  // The nodes are on a mount of their own, since a temporary folder may be on one where all devices
  // are dead; it is seen by the calling thread alone and by what that starts.
  explicit FakeGpus(uint32_t count) : count_(count) {
    namespace fs = std::filesystem;
    fs::create_directories(folder() / "dev");
    EXPECT_TRUE(sys::unshare(CLONE_NEWNS));
    EXPECT_TRUE(sys::makeMountsPrivate());
    EXPECT_TRUE(sys::mountAt((folder() / "dev").c_str(), "tmpfs", {{"mode", "755"}}, {}));
    for (uint32_t i = 0; i < count; ++i) node("nvidia" + std::to_string(i), 5);
    for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia-modeset"}) node(name, 3);
    write("proc/version", std::string("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  ") +
                              kVersion +
                              "  Release Build  (x@y)  Mon Jan  1 01:02:03 UTC 2026\n"
                              "GCC version:  gcc version 12.2.0\n");
    library("libcuda", "the driver");
    fs::create_directories(folder() / "root/usr/bin");
    fs::copy_file("/bin/echo", folder() / "root/usr/bin/nvidia-smi");
  }
  ~FakeGpus() { (void)sys::detachMount((folder() / "dev").c_str()); }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  [[nodiscard]] std::filesystem::path folder() const {
    return std::filesystem::canonical(dir_.path());
  }
  [[nodiscard]] std::filesystem::path libraries() const {
    return folder() / "root/usr/lib/x86_64-linux-gnu";
  }
  [[nodiscard]] GpuPlaces places() const {
    return {.proc = folder() / "proc", .dev = folder() / "dev", .root = folder() / "root"};
  }
  void lendTo(LocalOptions& options) const {
    for (uint32_t i = 0; i < count_; ++i) options.gpus.push_back({.model = "Fake", .minor = i});
    options.flavors =
        Flavors::ofMachine({.cpus = 2, .memoryBytes = 32ULL << 30, .gpus = options.gpus});
    options.gpuPlaces = places();
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((folder() / path).parent_path());
    std::ofstream(folder() / path) << text;
  }
  // With the link that programs know it by.
  void library(const std::string& name, const std::string& text) const {
    const std::string file = name + ".so." + kVersion;
    write("root/usr/lib/x86_64-linux-gnu/" + file, text + "\n");
    std::filesystem::create_symlink(file, libraries() / (name + ".so.1"));
  }

 private:
  void node(const std::string& name, unsigned minor) const {
    const std::string path = folder() / "dev" / name;
    EXPECT_EQ(::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor)), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
  }

  testing::TempDir dir_;
  uint32_t count_;
};

}  // namespace cay::engine
