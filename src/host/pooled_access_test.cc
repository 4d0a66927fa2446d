#include "host/pooled_access.h"

#include <gmock/gmock.h>

#include "host/pool_fixture.h"

namespace cay::host {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

class PooledAccessTest : public PoolFixture {
 protected:
  std::string stateFolder() { return std::filesystem::canonical(dir_.path() / "state"); }
};

TEST_F(PooledAccessTest, TheEnvironmentIsItsOwn) {
  sandbox::PoolSpec spec;
  spec.env = {"LANG=de_DE", "MINE=1", "PATHS=2"};
  const sandbox::PooledPtr pooled = create(spec);
  const std::string home = homeOf(*registry_, pooled->record);
  EXPECT_EQ(home, stateFolder() + "/sandboxes/" + pooled->record.id + "/home");
  ::setenv("CAY_TEST_SECRET", "x", 1);
  const std::vector<std::string> env = environmentOf(*registry_, pooled->record);
  EXPECT_THAT(env, IsSupersetOf({"HOME=" + home, "SBX_SANDBOX_ID=" + pooled->record.id,
                                 "SBX_PROXY_DIR=" + home + "/.sbx/proxy",
                                 "TMPDIR=" + home + "/.tmp", std::string("LANG=de_DE"),
                                 std::string("MINE=1"), std::string("PATHS=2")}));
  EXPECT_THAT(env, Not(Contains("LANG=C.UTF-8"))) << "what the request says wins";
  EXPECT_EQ(env.size(), 10U) << "and nothing else, least of all the host's";
}

TEST(SandboxVariables, AnImageDoesNotSayWhereTheHomeIs) {
  EXPECT_EQ(sandboxVariables({"HOME=/x", "USER=x", "TMPDIR=/x", "SBX_SANDBOX_ID=x", "HOMES=2",
                              "PATH=/opt/bin:/bin", "LANG="}),
            (std::vector<std::string>{"HOMES=2", "PATH=/root/.local/bin:/opt/bin:/bin", "LANG="}));
}

TEST_F(PooledAccessTest, CommandsStartInTheHomeAndFoldersAreRootedThere) {
  const sandbox::PooledPtr pooled = create();
  PooledAccess access(*registry_, pooled, workers_, std::make_shared<files::BurstTable>());
  const ExecService service = access.exec();
  EXPECT_EQ(service.defaults.cwd, homeOf(*registry_, pooled->record));
  EXPECT_TRUE(service.defaults.rootedAtHome);
  EXPECT_EQ(access.ownPort(), 0);

  sandbox::PoolSpec spec;
  spec.paths = sandbox::PathRule::kRoot;
  PooledAccess rooted(*registry_, create(spec), workers_, std::make_shared<files::BurstTable>());
  EXPECT_FALSE(rooted.exec().defaults.rootedAtHome);
}

TEST_F(PooledAccessTest, ItsFilesNeedNoKeeperWhereTheyLieInTheOpen) {
  const sandbox::PooledPtr pooled = create();
  const auto place = loop_.await(placeOf(*registry_, *pooled, pooled->record.spec->paths));
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_FALSE(pooled->sandbox.hasKeeper());
}

}  // namespace
}  // namespace cay::host
