#include "hub/tls_session.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>

#include "hub/openssl.h"

namespace cay::hub {

// Reading takes from the session's input, writing adds to its output and always succeeds, so that
// no operation of OpenSSL is ever half done.
struct SessionBio {
  static int write(BIO* bio, const char* data, int size) {
    of(bio).output_.append(data, static_cast<size_t>(size));
    return size;
  }

  static int read(BIO* bio, char* data, int size) {
    TlsSession& session = of(bio);
    BIO_clear_retry_flags(bio);
    const std::string_view rest = std::string_view(session.input_).substr(session.taken_);
    if (rest.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const size_t count = rest.copy(data, static_cast<size_t>(size));
    session.taken_ += count;
    if (count == rest.size()) {
      session.input_ = {};
      session.taken_ = 0;
    }
    return static_cast<int>(count);
  }

  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static const Owned<BIO_METHOD, BIO_meth_free> kMethod = [] {
      Owned<BIO_METHOD, BIO_meth_free> method(
          BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a session's strings"));
      BIO_meth_set_write(method.get(), write);
      BIO_meth_set_read(method.get(), read);
      BIO_meth_set_ctrl(method.get(), control);
      return method;
    }();
    return kMethod.get();
  }

  static TlsSession& of(BIO* bio) { return *static_cast<TlsSession*>(BIO_get_data(bio)); }
};

namespace {

// The alerts by which a client may refuse a certificate.
bool isDistrust(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  const int reason = ERR_GET_REASON(error);
  return reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
         reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN ||
         reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE;
}

bool isAddress(const std::string& name) {
  std::array<char, sizeof(in6_addr)> address;
  return ::inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

}  // namespace

Result<std::unique_ptr<TlsSession>> TlsSession::over(const TlsContext& context) {
  std::unique_ptr<TlsSession> session(new TlsSession());
  session->ssl_ = SSL_new(context.current());
  BioPtr bio(BIO_new(SessionBio::method()));
  if (session->ssl_ == nullptr || !bio) return failOpenssl("begin TLS");
  BIO_set_data(bio.get(), session.get());
  BIO_set_init(bio.get(), 1);
  BIO* both = bio.release();
  SSL_set_bio(session->ssl_, both, both);
  return session;
}

Result<std::unique_ptr<TlsSession>> TlsSession::server(const TlsContext& context) {
  CAY_ASSIGN(auto session, over(context));
  SSL_set_accept_state(session->ssl_);
  return session;
}

Result<std::unique_ptr<TlsSession>> TlsSession::client(const TlsContext& context,
                                                       const std::string& name) {
  CAY_ASSIGN(auto session, over(context));
  SSL* ssl = session->ssl_;
  SSL_set_connect_state(ssl);
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // An empty name would accept the certificate of anybody.
  const bool named = isAddress(name)
                         ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1
                         : !name.empty() && SSL_set1_host(ssl, name.c_str()) == 1 &&
                               SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
  if (!named) return failOpenssl("name the server");
  return session;
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

std::string TlsSession::serverName() const {
  const char* name = SSL_get_servername(ssl_, TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

void TlsSession::consumeOutput(size_t count) {
  sent_ += count;
  if (sent_ < output_.size()) return;
  output_ = {};  // an idle connection keeps no buffers
  sent_ = 0;
}

TlsSession::State TlsSession::judge(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_NONE:
      return State::kReady;
    case SSL_ERROR_WANT_READ:
      return State::kHungry;
    case SSL_ERROR_ZERO_RETURN:
      return State::kEnded;
    default:
      break;
  }
  const unsigned long error = ERR_peek_error();
  distrusted_ = isDistrust(error);
  const long verified = SSL_get_verify_result(ssl_);
  const char* reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                             : ERR_reason_error_string(error);
  reason_ = reason == nullptr ? "unknown reason" : reason;
  ERR_clear_error();
  return State::kBroken;
}

TlsSession::State TlsSession::handshake() {
  ERR_clear_error();
  return judge(SSL_do_handshake(ssl_));
}

TlsSession::Read TlsSession::read(std::span<char> into) {
  ERR_clear_error();
  const int count = SSL_read(ssl_, into.data(), static_cast<int>(into.size()));
  const State state = judge(count);
  return {.state = state, .count = count > 0 ? static_cast<size_t>(count) : 0};
}

bool TlsSession::write(std::string_view bytes) {
  ERR_clear_error();
  if (bytes.empty()) return true;
  return judge(SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))) == State::kReady;
}

void TlsSession::close() {
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace cay::hub
