// TLS of one connection between byte strings: no sockets, so it never waits. What the network
// brings is fed in, what it should get lies in output().
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hub/tls_context.h"

namespace cay::hub {

class TlsSession {
 public:
  static Result<std::unique_ptr<TlsSession>> server(const TlsContext& context);
  // Wants a certificate for `name`, a host's or an address.
  static Result<std::unique_ptr<TlsSession>> client(const TlsContext& context,
                                                    const std::string& name);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  void feed(std::string_view bytes) { input_.append(bytes); }
  [[nodiscard]] std::string_view output() const { return std::string_view(output_).substr(sent_); }
  void consumeOutput(size_t count);

  enum class State : uint8_t {
    kReady,   // went on
    kHungry,  // needs more of the network's bytes
    kEnded,   // the other side has said that no more will come
    kBroken,  // for good; output() may hold an alert
  };
  State handshake();
  struct Read {
    State state;
    size_t count;
  };
  Read read(std::span<char> into);
  // Only after the handshake; false if it is broken.
  bool write(std::string_view bytes);
  // Says that no more will come from here.
  void close();

  // What the client asked for, as it wrote it; empty if it did not say.
  [[nodiscard]] std::string serverName() const;
  // The other side has said that it does not accept our certificate.
  [[nodiscard]] bool distrusted() const { return distrusted_; }
  // Why the handshake is broken.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  friend struct SessionBio;  // OpenSSL's way to the strings
  TlsSession() = default;
  static Result<std::unique_ptr<TlsSession>> over(const TlsContext& context);
  State judge(int result);

  SSL* ssl_ = nullptr;
  std::string input_;
  size_t taken_ = 0;
  std::string output_;
  size_t sent_ = 0;
  std::string reason_;
  bool distrusted_ = false;
};

}  // namespace cay::hub
