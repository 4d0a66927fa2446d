#include "hub/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <string_view>

#include "base/text.h"
#include "hub/certificates.h"

namespace cay::hub {
namespace {

constexpr std::string_view kHttp = "\x08http/1.1";

// A client that offers protocols must offer ours; one that offers none speaks it anyway.
int chooseProtocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* outLength,
                   const unsigned char* offered, unsigned offeredLength, void* /*unused*/) {
  const auto* own = reinterpret_cast<const unsigned char*>(kHttp.data());
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, outLength, own, kHttp.size(), offered, offeredLength) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<std::shared_ptr<SSL_CTX>> common(const SSL_METHOD* method) {
  SslContextPtr context(SSL_CTX_new(method));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return failOpenssl("prepare TLS");
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // An idle connection keeps no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return std::shared_ptr<SSL_CTX>(std::move(context));
}

// Certificates behind the first lead from it to its CA.
Result<> addChain(SSL_CTX& context, std::string_view text) {
  const auto certificates = certificatesIn(text);
  for (size_t i = 1; i < certificates.size(); ++i) {
    CAY_ASSIGN(CertificatePtr further, readCertificate(certificates[i]));
    if (SSL_CTX_add1_chain_cert(&context, further.get()) != 1) return failOpenssl("use a chain");
  }
  return {};
}

Result<std::shared_ptr<SSL_CTX>> showing(const Certificate& certificate) {
  CAY_ASSIGN(const CertificatePtr first, readCertificate(certificate.certificatePem));
  CAY_ASSIGN(const KeyPtr key, readKey(certificate.keyPem));
  if (!belongTogether(*first, *key)) {
    return fail(Code::kInvalid, "the key is not that of the certificate");
  }
  CAY_ASSIGN(std::shared_ptr<SSL_CTX> context, common(TLS_server_method()));
  if (SSL_CTX_use_certificate(context.get(), first.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return failOpenssl("use the certificate");
  }
  CAY_TRY(addChain(*context, certificate.certificatePem));
  // One is enough for a client that comes again; each costs bytes in every handshake.
  SSL_CTX_set_num_tickets(context.get(), 1);
  SSL_CTX_set_alpn_select_cb(context.get(), chooseProtocol, nullptr);
  return context;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::server(const Certificate& certificate) {
  CAY_ASSIGN(auto context, showing(certificate));
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(context)));
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(const std::string& caFile) {
  CAY_ASSIGN(auto context, common(TLS_client_method()));
  if (SSL_CTX_load_verify_file(context.get(), caFile.c_str()) != 1) {
    return failOpenssl("read the certificates of " + quoted(caFile));
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const auto* protocols = reinterpret_cast<const unsigned char*>(kHttp.data());
  if (SSL_CTX_set_alpn_protos(context.get(), protocols, kHttp.size()) != 0) {
    return failOpenssl("offer HTTP/1.1");
  }
  return std::shared_ptr<TlsContext>(new TlsContext(std::move(context)));
}

Result<> TlsContext::renew(const Certificate& certificate) {
  CAY_ASSIGN(context_, showing(certificate));
  return {};
}

}  // namespace cay::hub
