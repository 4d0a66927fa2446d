#include "sandbox/nursery_fixture.h"

namespace cay::sandbox {
namespace {

TEST_F(NurseryTest, ACommandIsRootOfItsOwnSmallWorld) {
  const Plan sandbox = plan();
  const sys::Packet hello = begin(sandbox);
  ASSERT_EQ(kindOf(hello), Message::kHello) << textOf(hello);
  EXPECT_EQ(hello.fds.size(), 1U);
  (void)receive();  // kReady
  const Outcome who = run(sandbox, "id -u; id -g; hostname; echo $$; ls /proc | grep -c '^[0-9]'");
  EXPECT_EQ(who.exit.exitCode, 0);
  EXPECT_TRUE(who.output.starts_with("0\n0\n" + sandbox.id + "\n")) << who.output;
  const Outcome writes =
      run(sandbox, "echo x > /etc/mine && mkdir -p /usr/local/mine && cat /etc/mine");
  EXPECT_EQ(writes.output, "x\n");
  EXPECT_FALSE(fs::exists(skeleton() / "etc/mine"));
  EXPECT_FALSE(fs::exists("/usr/local/mine"));
  struct stat info{};
  ASSERT_EQ(::stat((folderOf(sandbox) / "tops/0/upper/etc/mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, sandbox.firstUid);
}

TEST_F(NurseryTest, AnOwnNetworkHasALoopbackAndAllPorts) {
  const Plan sandbox = plan(Network::kNone);
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bound =
      run(sandbox,
          "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 80));"
          "c=socket.create_connection((\"127.0.0.1\", 80)); print(\"ok\")'");
  EXPECT_EQ(bound.output, "ok\n");
}

TEST_F(NurseryTest, TheHostsNetworkCannotBeBound) {
  const Plan sandbox = plan();
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bound =
      run(sandbox, "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 18080))' 2>&1");
  EXPECT_NE(bound.exit.exitCode, 0);
  EXPECT_TRUE(bound.output.contains("Permission denied")) << bound.output;
}

TEST_F(NurseryTest, AWallThatCannotRiseIsARefusal) {
  Plan sandbox = plan();
  sandbox.root[1].lowers = {"/no/such/folder"};
  const sys::Packet answer = begin(sandbox);
  EXPECT_EQ(kindOf(answer), Message::kRefused);
  EXPECT_TRUE(textOf(answer).contains("/no/such/folder")) << textOf(answer);
  EXPECT_TRUE(receive().data.empty());
}

TEST_F(NurseryTest, OneProcessTooManyIsRefusedAndTold) {
  Plan sandbox = plan();
  sandbox.limits.pids = 8;
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bomb = run(sandbox, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait");
  EXPECT_EQ(bomb.exit.limitsHit & kLimitPids, kLimitPids) << bomb.output;
}

TEST_F(NurseryTest, TooMuchMemoryEndsTheCommandAsOom) {
  Plan sandbox = plan();
  sandbox.limits.memoryBytes = 64 << 20;
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bomb = run(sandbox, "python3 -c 'x = bytearray(300 << 20)'");
  EXPECT_EQ(bomb.exit.cause, Cause::kOom) << bomb.output;
}

}  // namespace
}  // namespace cay::sandbox
