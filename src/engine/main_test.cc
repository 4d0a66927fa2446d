// The tests of this room start their own program again as one of its processes.
#include <gtest/gtest.h>

#include "engine/engine_process_fixture.h"
#include "engine/net_process.h"
#include "sandbox/nursery.h"

int main(int argc, char** argv) {
  if (const auto settings = cay::engine::netArguments({argv, argv + argc})) {
    return cay::engine::runNetProcess(*settings);
  }
  if (const auto settings = cay::sandbox::nurseryArguments({argv, argv + argc})) {
    return cay::sandbox::runNursery(*settings);
  }
  const std::vector<std::string> arguments(argv, argv + argc);
  if (arguments.size() == 5 && arguments[1] == cay::engine::kEngineProcess) {
    return cay::engine::runEngineProcess(arguments);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
