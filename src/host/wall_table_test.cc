#include "host/wall_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cay::host {
namespace {

using isolation::Verdict;
using ::testing::HasSubstr;

const WallTable kTable{
    .host = {{.name = "pid", .verdict = Verdict::kHeld, .why = "tried", .remedy = ""}},
    .none = {},
    .limitedDisk = {
        .name = "disk", .verdict = Verdict::kAbsent, .why = "no loop devices", .remedy = ""}};

TEST(WallTable, PassesOverWhatElseTheDoctorSays) {
  json::Object printed = wallTableObject(kTable);
  printed["mode"] = "full";
  printed["held"] = true;
  EXPECT_EQ(readWallTable(printed).value(), kTable);
}

TEST(WallTable, NamesWhatIsWrong) {
  json::Object printed = wallTableObject(kTable);
  printed.erase("walls_network_none");
  EXPECT_THAT(readWallTable(printed).error().message, HasSubstr("'walls_network_none' must be"));
  printed = wallTableObject(kTable);
  printed["walls"] = json::Object{{"pid", json::Object{{"verdict", "stands"}, {"why", ""}}}};
  EXPECT_THAT(readWallTable(printed).error().message,
              HasSubstr("'walls.pid' must have a known verdict"));
}

}  // namespace
}  // namespace cay::host
