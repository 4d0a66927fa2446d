// A blocking HTTP client over one kept connection. It does as little as a client can, since its own
// time is part of every round trip. Throws std::runtime_error when anything but 200 comes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "testing/raw_client.h"

namespace cay::bench {

// A whole request with its head, as it goes onto the wire.
std::string request(std::string_view method, std::string_view target, std::string_view token,
                    std::string_view body = {});

class Client {
 public:
  // Bytes that one send or recv call moves at most.
  static constexpr size_t kBufferBytes = 256 * 1024;

  explicit Client(uint16_t port);

  // The body of the answer, valid until the next call.
  std::string_view ask(std::string_view request);
  // Reads the body and drops it; gives its size.
  uint64_t download(std::string_view request);
  // PUTs `size` bytes of no meaning.
  void upload(std::string_view target, std::string_view token, uint64_t size);

 private:
  struct Head {
    size_t size = 0;
    bool chunked = false;
    uint64_t contentLength = 0;
  };

  void send(std::string_view bytes);
  // Adds at least one byte to what has been received.
  void receiveMore();
  Head receiveHead();

  testing::RawClient connection_;
  std::vector<char> buffer_;
  size_t received_ = 0;  // bytes in buffer_
  std::string body_;
};

}  // namespace cay::bench
