#include "layers/image_name.h"

#include <gtest/gtest.h>

namespace cay::layers {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(ImageName, IsReadAsDockerReadsIt) {
  const std::pair<std::string, std::string> cases[] = {
      {"python", "docker.io/library/python:latest"},
      {"python:3.12", "docker.io/library/python:3.12"},
      {"library/python:3.12", "docker.io/library/python:3.12"},
      {"docker.io/python:3.12", "docker.io/library/python:3.12"},
      {"docker.io/library/python:3.12", "docker.io/library/python:3.12"},
      {"index.docker.io/library/python:3.12", "docker.io/library/python:3.12"},
      {"user/repo", "docker.io/user/repo:latest"},
      {"a/b/c:t", "docker.io/a/b/c:t"},
      {"ghcr.io/user/repo:v1", "ghcr.io/user/repo:v1"},
      {"ghcr.io/repo", "ghcr.io/repo:latest"},
      {"localhost/repo", "localhost/repo:latest"},
      {"localhost:5000/repo:t", "localhost:5000/repo:t"},
      {"127.0.0.1:5000/a/b", "127.0.0.1:5000/a/b:latest"},
      {"[::1]:5000/repo:t", "[::1]:5000/repo:t"},
      {"Registry/repo", "Registry/repo:latest"},
      {"a__b/c.d_e---f", "docker.io/a__b/c.d_e---f:latest"},
      {"repo:_T.x-1", "docker.io/library/repo:_T.x-1"},
      {"python@" + kDigest, "docker.io/library/python@" + kDigest},
      {"python:3.12@" + kDigest, "docker.io/library/python@" + kDigest},
      {"localhost:5000/r@" + kDigest, "localhost:5000/r@" + kDigest},
  };
  for (const auto& [given, full] : cases) {
    const auto name = parseImageName(given);
    ASSERT_TRUE(name) << given << ": " << name.error().message;
    EXPECT_EQ(name->text(), full);
    EXPECT_EQ(parseImageName(full)->text(), full);
  }
}

TEST(ImageName, RefusesWhatIsNone) {
  for (const std::string& given : {std::string(),
                                   std::string("Python"),
                                   std::string("a//b"),
                                   std::string("/a"),
                                   std::string("a/"),
                                   std::string("a:"),
                                   std::string(":t"),
                                   std::string("a b"),
                                   std::string("../a"),
                                   std::string("a/../b"),
                                   std::string("a/./b"),
                                   std::string("-a"),
                                   std::string("a-"),
                                   std::string("a._b"),
                                   std::string("a___b"),
                                   std::string("a..b"),
                                   std::string("a:.t"),
                                   std::string("a:t/b:"),
                                   std::string("a@"),
                                   std::string("a@sha256:1"),
                                   "a@" + kDigest + "0",
                                   std::string("a@md5:" + std::string(32, 'a')),
                                   "@" + kDigest,
                                   std::string("-.io/a"),
                                   std::string("a.io:99999/b"),
                                   std::string("a.io:x/b"),
                                   std::string("docker://a"),
                                   std::string("--help"),
                                   std::string("a\0b", 3),
                                   std::string("a\n"),
                                   "a:" + std::string(129, 't'),
                                   std::string(300, 'a'),
                                   std::string("[]/a"),
                                   std::string("a/\xC3\xA4")}) {
    const auto name = parseImageName(given);
    ASSERT_FALSE(name) << given;
    EXPECT_EQ(name.error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace cay::layers
