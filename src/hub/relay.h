// Routes of the Hub that are not ours go on to another one. HF_ENDPOINT brings every model download
// of a user's process here; this keeps them working.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "hub/outbound.h"
#include "hub/tls_context.h"
#include "hub/tokens.h"
#include "net/handler.h"
#include "net/passage_fields.h"
#include "net/task.h"

namespace cay::hub {

struct UpstreamSettings {
  std::string url = "https://huggingface.co";  // https:// or http://, with or without a path
  std::string token;                           // for requests of our users; empty: none
};
// Of --upstream-token-file. kInvalid for a file without a token, and for tokens of ours.
Result<std::string> readUpstreamToken(const std::string& file);

class Relay final : public net::Handler {
 public:
  // `tokens` and `outbound` outlive it. kInvalid for a URL that is none. Where this machine trusts
  // nobody, requests fail, not this.
  static Result<std::unique_ptr<Relay>> open(UpstreamSettings settings, const Tokens& tokens,
                                             Outbound& outbound);

  // Streams it there and the answer back, redirects included. Tokens of ours never leave; those of
  // others pass. Who comes from another machine needs a token of ours. 502 if the upstream cannot
  // be reached.
  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override;

 private:
  struct Upstream {
    std::string origin;  // "https://host:port", as the URL has it
    std::string host;
    uint16_t port = 0;
    bool tls = true;
    std::string prefix;  // of every path; empty, or "/..." without a slash at its end
  };

  Relay(Upstream upstream, std::string token, const Tokens& tokens, Outbound& outbound)
      : upstream_(std::move(upstream)),
        token_(std::move(token)),
        tokens_(tokens),
        outbound_(outbound) {}

  static Result<Upstream> parse(const std::string& url);
  net::Task<Result<net::Stream>> dial();
  [[nodiscard]] net::Onward onward(const net::RequestHead& head, bool byOurUser) const;

  Upstream upstream_;
  std::string token_;
  const Tokens& tokens_;
  Outbound& outbound_;
  std::shared_ptr<TlsContext> trust_;  // none: nobody is trusted
};

}  // namespace cay::hub
