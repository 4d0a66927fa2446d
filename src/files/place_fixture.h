// For tests: a temporary folder as the root of a Place, with something outside of it to protect.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "files/place.h"
#include "testing/temp_dir.h"

namespace cay::files {

namespace fs = std::filesystem;

// The value of a Result that must not fail here.
template <typename T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    std::abort();
  }
  return *std::move(result);
}

inline Fd openRoot(const fs::path& path) {
  return must(sys::openAt(AT_FDCWD, path.c_str(), O_PATH | O_DIRECTORY));
}

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() {
    fs::create_directories(root_ / "home");
    fs::create_directories(root_ / "tmp");
    fs::create_directories(outside_);
    put(outside_ / "secret", "the secret");
    place_ = must(Place::create(openRoot(root_), "/home"));
  }

  static void put(const fs::path& file, std::string_view content) {
    std::ofstream(file, std::ios::binary) << content;
  }
  static std::string get(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static mode_t modeOf(const fs::path& file) {
    struct stat stat{};
    EXPECT_EQ(::lstat(file.c_str(), &stat), 0) << file;
    return stat.st_mode & 07777;
  }
  static size_t entriesIn(const fs::path& dir) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir), {}));
  }

  cay::testing::TempDir dir_;
  const fs::path root_ = dir_.path() / "root";
  const fs::path outside_ = dir_.path() / "outside";
  std::shared_ptr<const Place> place_;
};

}  // namespace cay::files
