// What a head says about its body and its target, judged strictly: two readers of the same head
// must never disagree on where the message ends. No I/O and no parsing of lines.
#pragma once

#include <cstdint>
#include <expected>

#include "net/head_scanner.h"
#include "net/http.h"

namespace cay::net {

// Whether a server has a use for requests to become a tunnel.
enum class Connects : uint8_t { kRefused, kAllowed };

// Fills target, path, query, framing, contentLength, keepAlive and expectContinue of a head whose
// method, target, minorVersion and fields are set, or says why it must be refused. The target of
// CONNECT is a host and a port, and its path is empty.
std::expected<void, HeadError> judgeRequest(RequestHead& head, Connects connects);

struct BodyFraming {
  Framing framing = Framing::kNone;
  uint64_t contentLength = 0;
};
// The body of a response with these fields. `toHead`: it answers a HEAD request.
std::expected<BodyFraming, HeadError> judgeResponse(int status, int minorVersion,
                                                    const Fields& fields, bool toHead);

// Statuses whose answers never have a body.
bool isBodyless(int status);
// A field that may not come as a trailer: it would change the framing, the routing or the
// credentials of a message that has already been judged.
bool isForbiddenTrailer(std::string_view name);

}  // namespace cay::net
