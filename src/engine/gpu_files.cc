#include "engine/gpu_files.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/text.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;

#if defined(__aarch64__)
#define CAY_TRIPLET "aarch64-linux-gnu"
#else
#define CAY_TRIPLET "x86_64-linux-gnu"
#endif

// In the order in which they count.
constexpr const char* kLibraryFolders[] = {"/usr/lib/" CAY_TRIPLET,
                                           "/usr/lib/" CAY_TRIPLET "/nvidia/current",
                                           "/usr/lib64",
                                           "/usr/lib64/nvidia",
                                           "/usr/local/nvidia/lib64",
                                           "/usr/lib",
                                           "/run/opengl-driver/lib"};
constexpr const char* kProgramFolders[] = {"/usr/bin", "/usr/local/nvidia/bin"};

// For computing, for video, and to look at GPUs. Not those that draw: there is no display.
constexpr std::string_view kLibraries[] = {"libcuda",
                                           "libcudadebugger",
                                           "libnvcuvid",
                                           "libnvidia-cfg",
                                           "libnvidia-encode",
                                           "libnvidia-gpucomp",
                                           "libnvidia-ml",
                                           "libnvidia-nvvm",
                                           "libnvidia-opencl",
                                           "libnvidia-opticalflow",
                                           "libnvidia-pkcs11",
                                           "libnvidia-pkcs11-openssl3",
                                           "libnvidia-ptxjitcompiler",
                                           "libnvidia-sandboxutils"};
constexpr std::string_view kWithoutIt = "libcuda.so.1";
constexpr std::string_view kProgram = "nvidia-smi";

bool isVersion(std::string_view word) {
  return word.contains('.') && word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build …"
Result<std::string> driverVersion(const GpuPlaces& places) {
  const std::string file = places.proc + "/version";
  CAY_ASSIGN(const std::string text, sys::readFile(file.c_str()));
  for (const std::string_view word : words(std::string_view(text).substr(0, text.find('\n')))) {
    if (isVersion(word)) return std::string(word);
  }
  return fail(Code::kNotFound, "no version of the driver is in " + file);
}

bool isLibrary(std::string_view name) {
  const size_t end = name.find(".so");
  return end != std::string_view::npos &&
         std::ranges::find(kLibraries, name.substr(0, end)) != std::end(kLibraries);
}

// What a name stands for, without any link; empty if that is no file.
fs::path fileOf(const fs::path& path) {
  std::error_code error;
  fs::path file = fs::canonical(path, error);
  return !error && fs::is_regular_file(file, error) ? file : fs::path();
}

// Itself, and no script that leads to it: what that leads to may not be there inside.
bool isExecutable(const fs::path& file) {
  constexpr std::string_view kMagic =
      "\x7f"
      "ELF";
  const auto opened = sys::openAt(AT_FDCWD, file.c_str(), O_RDONLY);
  char begin[4];
  const auto length = opened ? sys::readSome(opened->get(), begin) : Result<size_t>(0);
  return length && std::string_view(begin, *length) == kMagic;
}

isolation::Bind bindOf(const fs::path& file, const char* folder, std::string_view name) {
  return {.source = file,
          .at = std::string(folder).append("/").append(name),
          .readOnly = true,
          .isFile = true};
}

// By all the names that the machine has for them: programs ask for libcuda.so.1, and the libraries
// themselves for some of the others by their versions.
Result<std::vector<isolation::Bind>> driverFiles(const GpuPlaces& places) {
  CAY_ASSIGN(const std::string version, driverVersion(places));
  std::vector<isolation::Bind> binds;
  std::set<std::string> names;
  for (const char* folder : kLibraryFolders) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(places.root + folder, none)) {
      const std::string name = entry.path().filename();
      if (!isLibrary(name) || names.contains(name)) continue;
      const fs::path file = fileOf(entry.path());
      if (!file.filename().string().ends_with(".so." + version)) continue;
      binds.push_back(bindOf(file, kDriverLibraries, name));
      names.insert(name);
    }
  }
  if (!names.contains(std::string(kWithoutIt))) {
    std::string searched;
    for (const char* folder : kLibraryFolders) searched.append(" ").append(folder);
    return fail(Code::kNotFound, std::string(kWithoutIt) + " of the driver " + version +
                                     " is in none of the folders where it is searched:" + searched);
  }
  for (const char* folder : kProgramFolders) {
    const fs::path file = fileOf(fs::path(places.root + folder) / kProgram);
    if (file.empty() || !isExecutable(file)) continue;
    binds.push_back(bindOf(file, kDriverPrograms, kProgram));
    break;
  }
  return binds;
}

Result<std::vector<std::string>> deviceNodes(const GpuPlaces& places,
                                             const std::vector<uint32_t>& minors) {
  std::vector<std::string> out;
  for (const uint32_t minor : minors) out.push_back("nvidia" + std::to_string(minor));
  for (const char* common : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"})
    out.emplace_back(common);
  for (std::string& name : out) name.insert(0, places.dev + "/");
  std::error_code error;
  if (!fs::exists(out.back(), error)) out.pop_back();  // debuggers would use it
  for (const std::string& path : out) {
    if (fs::exists(path, error)) continue;
    return fail(Code::kNotFound, "there is no " + path +
                                     ": `nvidia-modprobe -u -c 0`, or whatever uses the GPU first, "
                                     "makes it");
  }
  return out;
}

}  // namespace

Result<GpuFiles> gpuFiles(const GpuPlaces& places, const std::vector<uint32_t>& minors) {
  GpuFiles out;
  CAY_ASSIGN(out.devices, deviceNodes(places, minors));
  CAY_ASSIGN(out.binds, driverFiles(places));
  return out;
}

}  // namespace cay::engine
