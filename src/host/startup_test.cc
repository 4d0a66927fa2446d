#include "host/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace cay::host {
namespace {

using ::testing::HasSubstr;

Startup attachedStartup() {
  Startup startup;
  startup.token = "t0ken";
  startup.idleTimeoutMs = 600'000;
  startup.endNote = "/s/host.end";
  startup.attached = AttachedSandbox{.folder = "/s/sandboxes/j1",
                                     .mode = isolation::Mode::kUnprivileged,
                                     .firstUid = 0x1001'0000,
                                     .cwd = "/app",
                                     .env = {"HOME=/root", "EMPTY=", "SMILE=\u263a=\n\"\\"},
                                     .logs = {.headBytes = 1 << 20, .ringBytes = 2 << 20}};
  return startup;
}

Startup poolStartup() {
  Startup startup;
  startup.token = "t0ken";
  startup.compatHostToken = true;
  startup.lifetimeMs = 86'400'000;
  startup.stateFolder = "/s/sandboxes/j2/pool";
  PoolSettings pool;
  pool.capacity = 7;
  pool.mostReady = 3;
  pool.image = layers::Image{.name = "python:3.12",
                             .version = "sha256:1",
                             .overlays = {{.at = "/", .lowers = {"/l/2", "/l/1"}}}};
  pool.image->config.env = {"PATH=/opt/bin:/bin"};
  pool.binds = {{.source = "/s/etc/hosts", .at = "/etc/hosts", .readOnly = true, .isFile = true},
                {.source = "/v/data", .at = "/data"}};
  pool.devices = {"/dev/nvidia0", "/dev/nvidiactl"};
  pool.ids = sandbox::UserIds{.base = 0x2000'0000, .step = 65536, .count = 65536, .slots = 7};
  pool.wallsNote = "/s/walls.json";
  startup.pool = std::move(pool);
  return startup;
}

std::string errorOf(std::string_view text) {
  const auto parsed = parseStartup(text);
  return parsed ? "" : parsed.error().message;
}

// The error after one value of the document, found by a JSON pointer, was changed.
std::string errorWith(const Startup& startup, const char* at, json::Value value) {
  json::Value document = json::parse(startupText(startup)).value();
  const std::string_view path(at);
  const size_t slash = path.rfind('/');
  json::Value& parent = document.at_pointer(path.substr(0, slash));
  if (parent.is_object()) {
    parent.as_object()[path.substr(slash + 1)] = std::move(value);
  } else {
    document.at_pointer(path) = std::move(value);
  }
  return errorOf(json::serialize(document));
}

std::string errorWithout(const Startup& startup, const char* parent, const char* name) {
  json::Value document = json::parse(startupText(startup)).value();
  document.at_pointer(parent).as_object().erase(name);
  return errorOf(json::serialize(document));
}

TEST(Startup, ComesBackAsItWas) {
  for (const Startup& startup : {attachedStartup(), poolStartup()}) {
    const auto parsed = parseStartup(startupText(startup));
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, startup);
  }
  Startup bare = poolStartup();
  bare.pool = PoolSettings{};
  EXPECT_EQ(parseStartup(startupText(bare)).value(), bare);
}

TEST(Startup, NamesWhatIsMissing) {
  for (const char* name : {"token", "idle_timeout_ms", "attached", "pool", "end_note"}) {
    EXPECT_EQ(errorWithout(attachedStartup(), "", name), "'" + std::string(name) + "' is missing");
  }
  EXPECT_EQ(errorWithout(attachedStartup(), "/attached", "first_uid"),
            "'attached.first_uid' is missing");
  EXPECT_EQ(errorWithout(poolStartup(), "/pool/image/overlays/0", "at"),
            "'pool.image.overlays[0].at' is missing");
}

TEST(Startup, NamesWhatIsUnknown) {
  EXPECT_EQ(errorWith(attachedStartup(), "/new_field", 1), "''new_field'' is not known here");
  EXPECT_EQ(errorWith(poolStartup(), "/pool/binds/1/x", 1),
            "'pool.binds[1].'x'' is not known here");
}

TEST(Startup, NamesWhatIsWrong) {
  const Startup one = attachedStartup();
  EXPECT_THAT(errorWith(one, "/token", ""), HasSubstr("'token' must be visible"));
  EXPECT_THAT(errorWith(one, "/token", "a b"), HasSubstr("'token' must be visible"));
  EXPECT_THAT(errorWith(one, "/token", "a\r\nX: y"), HasSubstr("'token' must be visible"));
  EXPECT_THAT(errorWith(one, "/token", 5), HasSubstr("'token' must be a string"));
  EXPECT_THAT(errorWith(one, "/idle_timeout_ms", -1),
              HasSubstr("'idle_timeout_ms' must be a whole"));
  EXPECT_THAT(errorWith(one, "/idle_timeout_ms", 1.5),
              HasSubstr("'idle_timeout_ms' must be a whole"));
  EXPECT_THAT(errorWith(one, "/compat_host_token", 1), HasSubstr("must be true or false"));
  EXPECT_THAT(errorWith(one, "/end_note", "relative"), HasSubstr("'end_note' must be an absolute"));
  EXPECT_THAT(errorWith(one, "/attached", nullptr),
              HasSubstr("'attached' or 'pool' must be there"));
  EXPECT_THAT(errorWith(one, "/attached", "x"), HasSubstr("'attached' must be an object"));
  EXPECT_THAT(errorWith(one, "/attached/folder", "s"),
              HasSubstr("'attached.folder' must be an abs"));
  EXPECT_THAT(errorWith(one, "/attached/folder", json::String("/" + std::string(5000, 'x'))),
              HasSubstr("'attached.folder' must be an absolute path"));
  EXPECT_THAT(errorWith(one, "/attached/first_uid", int64_t{1} << 32),
              HasSubstr("'attached.first_uid' must be a whole number"));
  EXPECT_THAT(errorWith(one, "/attached/env/1", "NOTHING"),
              HasSubstr("'attached.env' must be a list of NAME=value"));
  EXPECT_THAT(errorWith(one, "/attached/env/1", "=x"), HasSubstr("list of NAME=value"));
  EXPECT_THAT(errorWith(one, "/attached/env/1", json::String("A=\0", 3)),
              HasSubstr("'attached.env' must not contain a NUL"));
}

TEST(Startup, ASandboxWithoutANetworkOfItsOwnIsRefused) {
  // Its loopback would be the machine's, and with it the servers of everybody else.
  EXPECT_EQ(errorWith(attachedStartup(), "/attached/walls", "restricted"),
            "'attached.walls' must be full or unprivileged");
}

TEST(Startup, NamesWhatIsWrongWithAPool) {
  const Startup pool = poolStartup();
  EXPECT_THAT(errorWith(pool, "/pool/capacity", 0), HasSubstr("'pool.capacity' must be a whole"));
  EXPECT_THAT(errorWith(pool, "/state_folder", ""),
              HasSubstr("'state_folder' must be an absolute"));
  EXPECT_THAT(errorWith(pool, "/pool/walls", "strong"), HasSubstr("'pool.walls' must be full or"));
  EXPECT_THAT(errorWith(pool, "/pool/image/version", ""), HasSubstr("version' must not be empty"));
  EXPECT_THAT(errorWith(pool, "/pool/image/overlays/0/lowers", json::Array{}),
              HasSubstr("'pool.image.overlays[0].lowers' must be a list of absolute paths"));
  EXPECT_THAT(errorWith(pool, "/pool/image/overlays/0/lowers/1", "up"),
              HasSubstr("'pool.image.overlays[0].lowers' must be a list of absolute paths"));
  EXPECT_THAT(errorWith(pool, "/pool/binds/0/at", "etc"), HasSubstr("'pool.binds[0].at' must be"));
  EXPECT_THAT(errorWith(pool, "/pool/devices/1", "nvidia0"),
              HasSubstr("'pool.devices' must be a list of absolute paths"));
  EXPECT_THAT(errorWith(pool, "/pool/binds", "x"), HasSubstr("'pool.binds' must be a list"));
  EXPECT_THAT(errorWith(pool, "/pool/walls_note", "walls.json"),
              HasSubstr("'pool.walls_note' must be an absolute path, or empty"));
  EXPECT_THAT(errorWith(pool, "/attached", json::Object{}),
              HasSubstr("'attached.folder' is missing"));
  Startup both = attachedStartup();
  both.pool = pool.pool;
  EXPECT_THAT(errorOf(startupText(both)), HasSubstr("and not both"));
}

TEST(Startup, UserIdsMustFitIntoThoseOfTheMachine) {
  for (const char* at : {"/pool/ids/base", "/pool/ids/slots"}) {
    EXPECT_THAT(errorWith(poolStartup(), at, int64_t{0xFFFF'FFFE}),
                HasSubstr("'pool.ids.base' and"));
  }
  EXPECT_THAT(errorWith(poolStartup(), "/pool/ids/base", 0), HasSubstr("without 0"));
  EXPECT_THAT(errorWith(poolStartup(), "/pool/ids/count", 65537), HasSubstr("do not overlap"));
}

TEST(Startup, HostileTextIsRefused) {
  EXPECT_EQ(errorOf("[]"), "it must be a JSON object");
  EXPECT_THAT(errorOf(""), HasSubstr("bad JSON"));
  EXPECT_THAT(errorOf(startupText(attachedStartup()) + "{}"), HasSubstr("bad JSON"));
  EXPECT_THAT(errorOf(std::string(100'000, '[')), HasSubstr("bad JSON"));
  EXPECT_THAT(errorOf("{\"token\":\"\xff\"}"), HasSubstr("bad JSON"));
  EXPECT_THAT(errorOf(std::string(kMostStartupBytes + 1, ' ')), HasSubstr("16 MiB"));
}

TEST(EndNote, ComesBackAsItWas) {
  for (const End end : {End::kIdle, End::kLifetime, End::kSandboxEnded}) {
    const EndNote note{.why = end, .message = "idle for 600 s"};
    EXPECT_EQ(parseEndNote(endNoteText(note)).value(), note);
  }
  EXPECT_FALSE(parseEndNote(R"({"why":"bored","message":""})"));
  EXPECT_FALSE(parseEndNote(R"({"why":"idle")"));
}

}  // namespace
}  // namespace cay::host
