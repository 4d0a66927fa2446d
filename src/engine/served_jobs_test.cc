// Sandboxes and pools of them, served by the real cay-host.
#include <gmock/gmock.h>

#include <boost/asio/write.hpp>
#include <csignal>

#include "base/json.h"
#include "base/text.h"
#include "engine/fake_gpus_fixture.h"
#include "engine/local_engine_fixture.h"
#include "net/await.h"
#include "sandbox/keeper_mark.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

net::Task<std::string> exchange(net::Stream stream, std::string request) {
  (void)co_await boost::asio::async_write(stream.socket, boost::asio::buffer(request), net::kAwait);
  std::string answer;
  char buffer[4096];
  while (true) {
    const auto [error, size] =
        co_await stream.socket.async_read_some(boost::asio::buffer(buffer), net::kAwait);
    if (error) break;
    answer.append(buffer, size);
  }
  co_return answer;
}

class ServedJobs : public LocalEngineTest {
 protected:
  static constexpr char kToken[] = "a-token-of-the-sandbox";

  static JobSpec served(Kind kind) {
    JobSpec spec = job("never run");
    spec.kind = kind;
    spec.server.token = kToken;
    spec.server.capacity = kind == Kind::kPool ? 4 : 0;
    spec.secrets = {{"SBX_TOKEN", kToken}, {"KEY", "hidden"}};
    spec.env = {{"A", "1"}};
    return spec;
  }
  JobSpec serving(const JobSpec& asked) {
    JobSpec spec = submit(asked);
    const Status found = awaitStage(spec.id, Stage::kRunning);
    EXPECT_TRUE(found.serving);
    return spec;
  }
  // An answer as it came, head and body.
  std::string ask(const std::string& id, const std::string& method, const std::string& target,
                  const std::string& body = {}, const std::string& token = kToken) {
    auto stream = loop_->await(engine_->dial(id, kSandboxPort));
    if (!stream) return stream.error().message;
    return loop_->await(exchange(
        *std::move(stream),
        method + " " + target + " HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: " + token +
            "\r\nConnection: close\r\n" + "Content-Type: application/json\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body));
  }
  std::string run(const std::string& id, const std::string& script,
                  const std::string& prefix = "/v1", const std::string& token = kToken) {
    return ask(id, "POST", prefix + "/exec",
               json::serialize(json::Object{{"cmd", json::Array{"/bin/sh", "-c", script}}}), token);
  }
  // Of the first field of that name in an answer.
  static std::string valueIn(const std::string& answer, const std::string& field) {
    const std::string before = "\"" + field + "\":\"";
    const size_t at = answer.find(before);
    if (at == std::string::npos) return {};
    const size_t from = at + before.size();
    return answer.substr(from, answer.find('"', from) - from);
  }
  pid_t serverOf(const std::string& id) {
    const auto text = sys::readFile((state() + "/jobs/" + id + "/host.mark").c_str());
    const auto fields = words(text ? *text : std::string_view());
    return fields.size() == 3 ? static_cast<pid_t>(parseUint(fields[1]).value_or(0)) : 0;
  }
  static bool lives(pid_t pid) { return ::kill(pid, 0) == 0; }
  static size_t processesWith(const std::string& word) {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto text = sys::readFile((entry.path() / "cmdline").c_str());
      if (parseUint(entry.path().filename().string()) && text && text->contains(word)) ++count;
    }
    return count;
  }
};

TEST_F(ServedJobs, ASandboxIsServedFromOutsideItsWalls) {
  open();
  const JobSpec spec = serving(served(Kind::kDedicated));
  EXPECT_THAT(ask(spec.id, "GET", "/health"), StartsWith("HTTP/1.1 200"));
  const std::string answer =
      run(spec.id, "echo $A $KEY $SBX_TOKEN $JOB_ID; id -u; ls /proc | grep -c '^[0-9]'");
  EXPECT_THAT(answer, HasSubstr("1 hidden " + spec.id));
  EXPECT_THAT(answer, Not(HasSubstr(kToken)));
  const pid_t server = serverOf(spec.id);
  ASSERT_TRUE(lives(server));
  ASSERT_TRUE(loop_->await(engine_->end(spec.id, Stage::kCanceled, "enough")));
  EXPECT_TRUE(eventually([&] { return !lives(server); }));
  const auto over = loop_->await(engine_->dial(spec.id, kSandboxPort));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::kGone);
  EXPECT_FALSE(lines(spec.id).empty());
}

TEST_F(ServedJobs, AServerThatDiesIsStartedAgainAndTheSandboxGoesOn) {
  open();
  const JobSpec spec = serving(served(Kind::kDedicated));
  EXPECT_THAT(run(spec.id, "echo kept >/root/file"), HasSubstr("200"));
  const pid_t first = serverOf(spec.id);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return serverOf(spec.id) != first; }));
  EXPECT_THAT(run(spec.id, "cat /root/file"), HasSubstr("kept"));
  EXPECT_EQ(stageName(status(spec.id).stage), "RUNNING");
}

TEST_F(ServedJobs, ASandboxThatIsIdleIsComplete) {
  open();
  JobSpec asked = served(Kind::kDedicated);
  asked.server.idleTimeoutMs = 1000;
  const JobSpec spec = serving(asked);
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  EXPECT_THAT(status(spec.id).message, HasSubstr("idle"));
}

TEST_F(ServedJobs, ASandboxHasItsTime) {
  open();
  JobSpec asked = served(Kind::kDedicated);
  asked.timeoutMs = 2000;
  const JobSpec spec = serving(asked);
  EXPECT_EQ(awaitEnd(spec.id).message, "timed out after 2 s");
  EXPECT_EQ(stageName(status(spec.id).stage), "ERROR");
}

TEST_F(ServedJobs, ASandboxOutlivesTheEngine) {
  open();
  const JobSpec spec = serving(served(Kind::kDedicated));
  EXPECT_THAT(run(spec.id, "echo kept >/root/file"), HasSubstr("200"));
  const pid_t server = serverOf(spec.id);
  close();
  EXPECT_TRUE(lives(server));
  open({spec});
  awaitStage(spec.id, Stage::kRunning);
  EXPECT_EQ(serverOf(spec.id), server) << "the same as before";
  EXPECT_THAT(run(spec.id, "cat /root/file"), HasSubstr("kept"));
  close();
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  open({spec});
  ASSERT_TRUE(eventually([&] { return serverOf(spec.id) != server; }));
  EXPECT_THAT(run(spec.id, "cat /root/file"), HasSubstr("kept"));
}

TEST_F(ServedJobs, APoolServesSandboxesAndTakesThemAllWithIt) {
  open();
  const JobSpec spec = serving(served(Kind::kPool));
  EXPECT_THAT(ask(spec.id, "GET", "/health"), StartsWith("HTTP/1.1 200"));
  const std::string made = ask(spec.id, "POST", "/v1/sandboxes", "{}");
  const std::string id = valueIn(made, "id");
  const std::string token = valueIn(made, "token");
  ASSERT_FALSE(id.empty()) << made;
  const std::string word = "426" + std::to_string(::getpid());
  const std::string answer =
      run(spec.id, "setsid sleep " + word + " & echo $A $KEY", "/v1/sandboxes/" + id, token);
  EXPECT_THAT(answer, HasSubstr("1 hidden"));
  EXPECT_THAT(answer, Not(HasSubstr(kToken)));
  EXPECT_EQ(processesWith(word), 1U);
  const pid_t server = serverOf(spec.id);
  ASSERT_TRUE(lives(server));
  ASSERT_TRUE(loop_->await(engine_->end(spec.id, Stage::kCanceled, "enough")));
  EXPECT_FALSE(lives(server));
  EXPECT_EQ(processesWith(word), 0U);
  EXPECT_TRUE(eventually([&] { return fs::is_empty(state() + "/sandboxes/sandboxes"); }));
}

TEST_F(ServedJobs, GpusAreInTheSandboxAndInAllSandboxesOfAPool) {
  const FakeGpus gpus(2);
  gpus.lendTo(options_);
  open();
  const std::string show =
      "ls /dev | grep nvidia | tr '\\n' ' '; cat $LD_LIBRARY_PATH/libcuda.so.1; nvidia-smi smi;"
      "head -c1 /dev/nvidia* >/dev/null && echo read; mknod /root/x c 1 5 || echo refused";
  JobSpec asked = served(Kind::kDedicated);
  asked.flavor = "gpu";
  const JobSpec one = serving(asked);
  const std::string answer = run(one.id, show);
  for (const char* expected :
       {"nvidia-uvm nvidia0 nvidiactl ", "the driver", "smi", "read", "refused"}) {
    EXPECT_THAT(answer, HasSubstr(expected));
  }
  asked = served(Kind::kPool);
  asked.flavor = "gpu";
  const JobSpec pool = serving(asked);
  for (int i = 0; i < 2; ++i) {
    const std::string made = ask(pool.id, "POST", "/v1/sandboxes", "{}");
    const std::string inner =
        run(pool.id, show, "/v1/sandboxes/" + valueIn(made, "id"), valueIn(made, "token"));
    for (const char* expected :
         {"nvidia-uvm nvidia1 nvidiactl ", "the driver", "smi", "read", "refused"}) {
      EXPECT_THAT(inner, HasSubstr(expected));
    }
  }
}

TEST_F(ServedJobs, APoolOutlivesTheEngine) {
  open();
  const JobSpec spec = serving(served(Kind::kPool));
  const pid_t server = serverOf(spec.id);
  close();
  open({spec});
  awaitStage(spec.id, Stage::kRunning);
  EXPECT_EQ(serverOf(spec.id), server);
  EXPECT_THAT(ask(spec.id, "GET", "/health"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace cay::engine
