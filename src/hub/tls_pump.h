// Moves bytes between a socket that speaks TLS and a plain one. See tls_stream.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "hub/tls_session.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::hub {

class TlsPump {
 public:
  TlsPump(std::unique_ptr<TlsSession> session, net::Stream network);
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  enum class Shaken : uint8_t {
    kDone,
    kBroken,
    kLeft,  // the other side went away in the midst of it
  };
  net::Task<Shaken> shakeHands();
  [[nodiscard]] const TlsSession& session() const { return *session_; }
  // Something has been sent.
  [[nodiscard]] bool hasSpoken() const { return sentBytes_ > 0; }

  // After the handshake: passes on until both directions have ended or one fails.
  net::Task<> run(net::Stream plain);

 private:
  // From the network to the plain side and back, each until its end.
  net::Task<> inward();
  net::Task<> outward();
  // Completes some time after the plain side's other end has gone.
  net::Task<> untilPointless();

  // Waits for bytes for the session: their number, 0 at the end, or -errno.
  net::Task<ssize_t> feed();
  // Sends all that the session wants to be sent; false if the network fails.
  net::Task<bool> flush();
  // Passes on all that the session has, and says why it has no more.
  net::Task<TlsSession::State> deliver();
  // Waits until the plain side has taken what is held.
  net::Task<> deliverHeld();
  // Throws away what still comes, within limits: closing at once would reset the connection and
  // could destroy what the other side has not yet read.
  net::Task<> drain();
  // Lets others run now and then.
  net::Task<> rest(size_t moved);

  // As far as it goes without waiting.
  ssize_t feedOnce();
  TlsSession::State deliverOnce();
  ssize_t encryptOnce();
  // Neither side shall take the end for an orderly one.
  void cut();

  std::unique_ptr<TlsSession> session_;
  net::Socket network_;
  net::Cut networkCut_;
  net::Socket plain_;
  net::Cut plainCut_;
  std::string held_;       // decrypted, but the plain side was full
  bool nobodyIn_ = false;  // the plain side takes no more
  bool outEnded_ = false;
  bool flushing_ = false;
  net::Event flushed_;
  uint64_t sentBytes_ = 0;
  size_t burst_ = 0;
};

}  // namespace cay::hub
