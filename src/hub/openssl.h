// OpenSSL's objects as owned values, and its errors as ours.
#pragma once

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string_view>

#include "base/error.h"

namespace cay::hub {

template <auto Free>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <typename T, auto Free>
using Owned = std::unique_ptr<T, FreedBy<Free>>;

using BioPtr = Owned<BIO, BIO_free_all>;
using BigNumberPtr = Owned<BIGNUM, BN_free>;
using CertificatePtr = Owned<X509, X509_free>;
using ExtensionPtr = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using IntegerPtr = Owned<ASN1_INTEGER, ASN1_INTEGER_free>;
using KeyPtr = Owned<EVP_PKEY, EVP_PKEY_free>;
using NameConstraintsPtr = Owned<NAME_CONSTRAINTS, NAME_CONSTRAINTS_free>;
using SslContextPtr = Owned<SSL_CTX, SSL_CTX_free>;
using SslPtr = Owned<SSL, SSL_free>;
using TimePtr = Owned<ASN1_TIME, ASN1_TIME_free>;

// A reader of memory that must outlive it.
BioPtr readerOf(std::string_view text);

// What failed, with the first error in OpenSSL's queue, which is then empty.
std::unexpected<Error> failOpenssl(std::string_view what);

}  // namespace cay::hub
