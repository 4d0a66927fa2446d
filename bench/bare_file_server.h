// What a file transfer costs at least: one thread, one connection at a time, `GET /name` by
// sendfile and `PUT /name` by recv and write, with nothing around them.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "testing/raw_client.h"

namespace cay::bench {

class BareFileServer {
 public:
  explicit BareFileServer(std::string folder);

  [[nodiscard]] uint16_t port() const { return listener_.port(); }

 private:
  void serve(testing::RawClient& connection);
  bool sendFile(testing::RawClient& connection, const std::string& path);
  // `begun` are the bytes of the body that came with the head.
  bool receiveFile(testing::RawClient& connection, const std::string& path, std::string_view begun,
                   uint64_t size);

  std::string folder_;
  std::vector<char> buffer_;
  testing::RawListener listener_;
  std::jthread thread_;
};

}  // namespace cay::bench
