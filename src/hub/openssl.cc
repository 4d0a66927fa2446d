#include "hub/openssl.h"

#include <openssl/err.h>

#include <string>

namespace cay::hub {

BioPtr readerOf(std::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::unexpected<Error> failOpenssl(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return fail(Code::kInternal,
              std::string(what) + ": " + (reason == nullptr ? "unknown reason" : reason));
}

}  // namespace cay::hub
