#include "pool_host.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "pool_client.h"
#include "samples.h"

namespace cay::bench {
namespace {

std::string copied(const std::string& program, const testing::TempDir& folder) {
  const std::filesystem::path copy = folder.path() / "cay-host";
  std::filesystem::copy_file(program, copy);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0711));
  return copy;
}

}  // namespace

PoolHost::PoolHost(const std::string& program, std::string_view walls)
    : program_(copied(program, folder_)),
      process_(program_,
               {"SBX_HOST_MODE=1", "SBX_CAPACITY=20000", "CAY_WALLS=" + std::string(walls)}) {}

PoolHost::~PoolHost() {
  try {
    if (process_.pid() != 0) empty();
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "the pool could not be emptied: %s\n", error.what());
  }
}

void PoolHost::empty() const {
  PoolClient client(*this);
  for (const Box& box : client.list()) client.remove(box);
  settle();
}

void PoolHost::rest() const {
  constexpr double kPatience = 120;
  empty();
  const auto start = Clock::now();
  while (!std::filesystem::is_empty(process_.state() + "/sandboxes")) {
    if (secondsSince(start) > kPatience)
      throw std::runtime_error("sandboxes stay without a client");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  settle();
}

size_t PoolHost::waiting() const {
  const std::filesystem::directory_iterator trash(process_.state() + "/trash");
  return static_cast<size_t>(std::distance(trash, {}));
}

void PoolHost::settle() const {
  constexpr double kPatience = 60;
  size_t least = waiting();
  auto start = Clock::now();
  while (least > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const size_t now = waiting();
    if (now < least) start = Clock::now();
    least = std::min(least, now);
    if (secondsSince(start) > kPatience) throw std::runtime_error("the trash is not emptied");
  }
}

}  // namespace cay::bench
