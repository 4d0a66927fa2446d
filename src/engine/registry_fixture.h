// For tests: a real registry on this machine (Debian's docker-registry), and images to push to it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/tar_fixture.h"
#include "engine/tool_process.h"
#include "layers/digest.h"
#include "testing/temp_dir.h"

namespace cay::engine {

class ImageRegistry {
 public:
  static constexpr char kUser[] = "somebody";
  static constexpr char kPassword[] = "secret";
  enum class Access { kOpen, kWithPassword };

  explicit ImageRegistry(Access access = Access::kOpen) {
    port_ = freePort();
    std::string config =
        "version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: " +
        (temp_.path() / "data").string() + "}}\nhttp: {addr: \"" + host() + "\"}\n";
    if (access == Access::kWithPassword) {
      // The password's bcrypt hash.
      const std::string users = temp_.write(
          "users",
          std::string(kUser) + ":$2b$05$hqb8aG9HJUS040rWPb2JS.VREKxFEzcNHkHVDJrfjjtF2puTqkTtq\n");
      config += "auth: {htpasswd: {realm: test, path: " + users + "}}\n";
    }
    const std::string file = temp_.write("config.yml", config);
    const auto program = findTool("docker-registry", "docker-registry");
    EXPECT_TRUE(program) << program.error().message;
    if (!program) return;
    auto started = ToolProcess::start({.program = *program, .arguments = {"serve", file}});
    EXPECT_TRUE(started) << started.error().message;
    if (started) process_.emplace(*std::move(started));
    for (int i = 0; i < 1000 && !answers(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(answers()) << "the registry does not answer";
  }

  // "127.0.0.1:<port>"
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string name(const std::string& rest) const { return host() + "/" + rest; }
  [[nodiscard]] std::filesystem::path data() const { return temp_.path() / "data"; }

  // Pushes an image of these layers; skopeo compresses them on the way.
  void push(const std::string& name, const std::vector<std::string>& layers) {
    const cay::testing::TempDir layout;
    std::filesystem::create_directories(layout.path() / "blobs/sha256");
    const auto blob = [&](const std::string& bytes, const char* type) {
      const std::string digest = layers::digestOf(bytes);
      (void)layout.write("blobs/sha256/" + std::string(layers::digestHex(digest)), bytes);
      return R"({"mediaType":"application/vnd.oci.image.)" + std::string(type) + R"(","digest":")" +
             digest + R"(","size":)" + std::to_string(bytes.size()) + "}";
    };
    std::string diffIds;
    std::string blobs;
    for (const std::string& layer : layers) {
      diffIds += (diffIds.empty() ? "\"" : ",\"") + layers::digestOf(layer) + "\"";
      blobs += (blobs.empty() ? "" : ",") + blob(layer, "layer.v1.tar");
    }
    const std::string config =
        R"({"os":"linux","architecture":")" + std::string(architecture()) +
        R"(","config":{"Env":["FROM=image"],"WorkingDir":"/srv"},"rootfs":{"type":"layers","diff_ids":[)" +
        diffIds + "]}}";
    const std::string manifest =
        R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":)" +
        blob(config, "config.v1+json") + R"(,"layers":[)" + blobs + "]}";
    (void)layout.write("index.json", R"({"schemaVersion":2,"manifests":[)" +
                                         blob(manifest, "manifest.v1+json") + "]}");
    (void)layout.write("oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    auto tool = ToolProcess::start(
        {.program = "/usr/bin/skopeo",
         .arguments = {"--insecure-policy", "copy", "-q", "--dest-tls-verify=false",
                       "--dest-creds=" + std::string(kUser) + ":" + kPassword,
                       "oci:" + layout.path().string(), "docker://" + this->name(name)},
         .keepEnvironment = true,
         .err = 2});
    ASSERT_TRUE(tool) << tool.error().message;
    const auto done = tool->wait();
    ASSERT_TRUE(done) << done.error().message;
  }

 private:
  static std::string_view architecture() {
#if defined(__aarch64__)
    return "arm64";
#else
    return "amd64";
#endif
  }
  static sockaddr_in address(uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return out;
  }
  static uint16_t freePort() {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in any = address(0);
    socklen_t size = sizeof any;
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&any), size) != 0) return 0;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&any), &size);
    return ntohs(any.sin_port);
  }
  [[nodiscard]] bool answers() const {
    const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = address(port_);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }

  cay::testing::TempDir temp_;
  uint16_t port_ = 0;
  std::optional<ToolProcess> process_;
};

}  // namespace cay::engine
