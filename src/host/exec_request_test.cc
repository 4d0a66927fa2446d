#include "host/exec_request.h"

#include <gtest/gtest.h>

#include <csignal>

namespace cay::host {
namespace {

using sandbox::Kind;
using sandbox::OnDisconnect;

const ExecDefaults kDefaults{.env = {"PATH=/bin", "A=old"}, .cwd = "/start"};

Result<ExecRequest> parse(std::string_view body, Kind kind = Kind::kExec,
                          std::string_view key = "") {
  return parseExecRequest(body, kind, key, kDefaults);
}

std::string errorOf(std::string_view body, Kind kind = Kind::kExec) {
  const auto request = parse(body, kind);
  if (request) return "";
  EXPECT_EQ(request.error().code, Code::kInvalid);
  return request.error().message;
}

TEST(ExecRequest, AStringRunsInTheShellAndAListByItself) {
  EXPECT_EQ(parse(R"({"cmd":"a | b"})")->start.spec.argv,
            (std::vector<std::string>{"/bin/sh", "-c", "a | b"}));
  EXPECT_EQ(parse(R"({"cmd":["ls","-l"],"shell":false})")->start.spec.argv,
            (std::vector<std::string>{"ls", "-l"}));
  EXPECT_EQ(parse(R"({"cmd":"x","shell":true})")->start.spec.argv.size(), 3U);
}

TEST(ExecRequest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({})", "'cmd' is missing"},
      {R"([1])", "JSON object"},
      {R"({"cmd":)", "line 1"},
      {R"({"cmd":5})", "'cmd'"},
      {R"({"cmd":[]})", "'cmd'"},
      {R"({"cmd":[""]})", "'cmd'"},
      {R"({"cmd":["a",5]})", "'cmd'"},
      {R"({"cmd":"a\u0000b"})", "NUL"},
      {R"({"cmd":["a"],"shell":true})", "'shell'"},
      {R"({"cmd":"a","shell":false})", "'shell'"},
      {R"({"cmd":"a","shell":"yes"})", "'shell'"},
      {R"({"cmd":"a","env":[]})", "'env'"},
      {R"({"cmd":"a","env":{"":"x"}})", "'env'"},
      {R"({"cmd":"a","env":{"A=B":"x"}})", "'env'"},
      {R"({"cmd":"a","env":{"A":{}}})", "'env'"},
      {R"({"cmd":"a","cwd":5})", "'cwd'"},
      {R"({"cmd":"a","cwd":""})", "'cwd'"},
      {R"({"cmd":"a","timeout":"1"})", "'timeout'"},
      {R"({"cmd":"a","timeout":0})", "'timeout'"},
      {R"({"cmd":"a","timeout":-1})", "'timeout'"},
      {R"({"cmd":"a","stdin":5})", "'stdin'"},
      {R"({"cmd":"a","encoding":"latin1"})", "'encoding'"},
      {R"({"cmd":"a","on_disconnect":"stay"})", "'on_disconnect'"},
      {R"({"cmd":"a","tag":5})", "'tag'"},
  };
  for (const auto& [body, part] : bad) {
    EXPECT_NE(errorOf(body).find(part), std::string::npos) << body << " -> " << errorOf(body);
  }
  EXPECT_NE(errorOf(R"({"cmd":"a","stdin":"x"})", Kind::kProcess).find("'stdin'"),
            std::string::npos);
}

TEST(ExecRequest, UnknownAndNullFieldsAreIgnored) {
  EXPECT_EQ(
      errorOf(
          R"({"cmd":"a","new":1,"timeout":null,"env":null,"cwd":null,"stdin":null,"shell":null})"),
      "");
}

TEST(ExecRequest, EnvironmentValuesBecomeText) {
  const auto env =
      parse(R"({"cmd":"a","env":{"A":1,"B":true,"C":1.5,"D":"x","PATH":null}})")->start.spec.env;
  EXPECT_EQ(env, (std::vector<std::string>{"A=1", "B=true", "C=1.5", "D=x"}));
}

TEST(ExecRequest, TimesAndFolders) {
  EXPECT_EQ(parse(R"({"cmd":"a","timeout":1.5})")->start.spec.timeoutMs, 1500);
  EXPECT_EQ(parse(R"({"cmd":"a","timeout":0.0001})")->start.spec.timeoutMs, 1);
  EXPECT_GT(parse(R"({"cmd":"a","timeout":1e18})")->start.spec.timeoutMs, 1'000'000'000);
  EXPECT_EQ(parse(R"({"cmd":"a"})")->start.spec.cwd, "/start");
  EXPECT_EQ(parse(R"({"cmd":"a","cwd":"sub"})")->start.spec.cwd, "/start/sub");
  EXPECT_EQ(parse(R"({"cmd":"a","cwd":"/x"})")->start.spec.cwd, "/x");
}

TEST(ExecRequest, FoldersInAPoolAreRootedAtTheHome) {
  const auto folder = [](const std::string& cwd) {
    const ExecDefaults pooled{.env = {}, .cwd = "/root", .rootedAtHome = true};
    const std::string body = R"({"cmd":"a","cwd":")" + cwd + "\"}";
    return parseExecRequest(body, Kind::kExec, "", pooled)->start.spec.cwd;
  };
  for (const char* cwd : {"work", "/work", "./work", "../work", "/../../work", "/a/../work",
                          "/root/work", "//root//work/", "/root/../work"}) {
    EXPECT_EQ(folder(cwd), "/root/work") << cwd;
  }
  for (const char* cwd : {"/", ".", "..", "/root", "/root/", "a/.."}) {
    EXPECT_EQ(folder(cwd), "/root") << cwd;
  }
  EXPECT_EQ(folder("/rooted"), "/root/rooted") << "only begins like the home";
  EXPECT_EQ(folder("/etc"), "/root/etc");
}

TEST(ExecRequest, WhatHappensWhenTheClientGoes) {
  const auto choice = [](std::string_view body, std::string_view key, Kind kind = Kind::kExec) {
    return parse(body, kind, key)->start.spec.onDisconnect;
  };
  EXPECT_EQ(choice(R"({"cmd":"a"})", ""), OnDisconnect::kKill);
  EXPECT_EQ(choice(R"({"cmd":"a"})", "k"), OnDisconnect::kKeepShort);
  EXPECT_EQ(choice(R"({"cmd":"a","on_disconnect":"keep"})", ""), OnDisconnect::kKeep);
  EXPECT_EQ(choice(R"({"cmd":"a","on_disconnect":"kill"})", "k"), OnDisconnect::kKill);
  EXPECT_EQ(choice(R"({"cmd":"a"})", "", Kind::kProcess), OnDisconnect::kKeep);
}

TEST(ExecRequest, TheFingerprintTellsRequestsApart) {
  const auto print = [](std::string_view body, Kind kind = Kind::kExec) {
    return parse(body, kind, "k")->start.fingerprint;
  };
  EXPECT_EQ(print(R"({"cmd":"a"})"), print(R"({"cmd":"a"})"));
  EXPECT_NE(print(R"({"cmd":"a"})"), print(R"({"cmd":"b"})"));
  EXPECT_NE(print(R"({"cmd":"a"})"), print(R"({"cmd":"a"})", Kind::kProcess));
}

TEST(ExecRequest, Signals) {
  EXPECT_EQ(parseSignalRequest(R"({"signal":"INT"})").value(), SIGINT);
  EXPECT_EQ(parseSignalRequest(R"({"signal":"SIGUSR1"})").value(), SIGUSR1);
  EXPECT_EQ(parseSignalRequest(R"({"signal":9})").value(), SIGKILL);
  for (const char* bad : {R"({})", R"({"signal":"NOPE"})", R"({"signal":0})", R"({"signal":99})",
                          R"({"signal":true})", R"([])", R"()"}) {
    EXPECT_FALSE(parseSignalRequest(bad)) << bad;
  }
}

}  // namespace
}  // namespace cay::host
