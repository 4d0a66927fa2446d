// Real roots of real layers, in processes of their own. Needs root.
#include "isolation/root.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

#include "isolation/child_fixture.h"
#include "isolation/enclosure.h"
#include "isolation/stage.h"
#include "sys/io.h"
#include "sys/namespaces.h"
#include "testing/temp_dir.h"

namespace cay::isolation {
namespace {

namespace fs = std::filesystem;

class RootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount layers with other ids";
    for (const char* folder : {"skeleton/proc", "skeleton/dev", "skeleton/etc",
                               "sandboxes/s/tops/0/work", "sandboxes/s/tops/0/upper"}) {
      fs::create_directories(temp_.path() / folder);
    }
    const fs::path upper = temp_.path() / "sandboxes/s/tops/0/upper";
    ASSERT_EQ(::chown(upper.c_str(), plan_.firstUid, plan_.firstUid), 0);
  }

  // Layers that each have a file of their own and their own idea of another, lowest first.
  void addLayers(int count) {
    auto& lowers = plan_.root[0].lowers;
    for (int i = 0; i < count; ++i) {
      const fs::path layer = temp_.path() / ("layer-with-a-long-name-" + std::to_string(i));
      fs::create_directories(layer / "etc");
      std::ofstream(layer / "etc" / ("of" + std::to_string(i))) << i;
      std::ofstream(layer / "etc/top") << i;
      lowers.insert(lowers.begin(), layer);
    }
    lowers.push_back(temp_.path() / "skeleton");
  }

  // What `look` says inside, 99 if the root could not be entered.
  int inside(const std::function<int()>& look) {
    return inChild([&] {
      const auto entered = enter(look);
      if (!entered) std::cerr << entered.error().message << "\n";
      return entered.value_or(99);
    });
  }

  Result<int> enter(const std::function<int()>& look) {
    CAY_ASSIGN(Stage stage, Stage::enter(plan_.mode, temp_.path() / "sandboxes", Fd()));
    Placed placed{.lowers = {{}}, .binds = {}};
    for (const std::string& lower : plan_.root[0].lowers) {
      CAY_ASSIGN(placed.lowers[0].emplace_back(), stage.layer(lower));
    }
    CAY_ASSIGN(const pid_t keeper, sys::forkInto(namespacesFor(plan_)));
    if (keeper == 0) {
      const auto root = enterOwnRoot({plan_, placed, Fd()});
      if (!root) std::cerr << root.error().message << "\n";
      ::_exit(root ? look() : 99);
    }
    int status = 0;
    if (::waitpid(keeper, &status, 0) != keeper) return failSys("waitpid", errno);
    return WEXITSTATUS(status);
  }

  static std::string get(const std::string& path) {
    return sys::readFile(path.c_str()).value_or("missing");
  }

  cay::testing::TempDir temp_;
  Plan plan_{.id = "s",
             .firstUid = 3'000'000,
             .root = {{.at = "/", .lowers = {}}},
             .limits = {},
             .binds = {}};
};

TEST_F(RootTest, MayHaveAHundredLayers) {
  addLayers(100);
  // The uppermost hides what the eighth has.
  const fs::path uppermost = plan_.root[0].lowers.front();
  ASSERT_EQ(::mknod((uppermost / "etc/of7").c_str(), S_IFCHR, 0), 0);
  EXPECT_EQ(inside([] {
              if (get("/etc/top") != "99") return 1;
              if (get("/etc/of0") != "0" || get("/etc/of99") != "99") return 2;
              if (get("/etc/of7") != "missing") return 3;
              if (std::distance(fs::directory_iterator("/etc"), {}) != 100) return 4;
              struct stat stat{};
              if (::stat("/etc/of50", &stat) != 0 || stat.st_uid != 3'000'000) return 5;
              return 0;
            }),
            0);
}

TEST_F(RootTest, TooManyLayersAreRefused) {
  addLayers(kMostLayers);
  EXPECT_EQ(inside([] { return 0; }), 99);
}

}  // namespace
}  // namespace cay::isolation
