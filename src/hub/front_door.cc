#include "hub/front_door.h"

#include <string_view>

#include "base/text.h"

namespace cay::hub {

net::Task<> SideDoor::handle(const net::RequestHead& head, net::Body& body,
                             net::Response& response) {
  if (head.method == "CONNECT") {
    co_await connects_.handle(head, response);
  } else {
    co_await edge_.byPath(head, body, response);
  }
}

bool FrontDoor::isForApi(const net::RequestHead& head) const {
  if (!head.peer.tls) return true;
  if (apiByTls_ == ApiByTls::kNo) return false;
  std::string_view host = head.fields.get("host").value_or("");
  host = host.substr(0, host.find(':'));
  return equalIgnoreCase(host, address_.domain) || equalIgnoreCase(host, "api." + address_.domain);
}

net::Task<> FrontDoor::handle(const net::RequestHead& head, net::Body& body,
                              net::Response& response) {
  if (head.method == "CONNECT" && head.peer.tls) {
    (void)co_await sendApiError(
        response, {.status = 405, .message = "CONNECT is not served by TLS", .field = {}});
  } else if (isForApi(head)) {
    co_await api_.handle(head, body, response);
  } else {
    co_await edge_.byHost(head, body, response);
  }
}

}  // namespace cay::hub
