// How requests are sorted by the way they came.
//
//   FrontDoor   everything: by TLS to the edge, the rest to the API
//   SideDoor    what of the API's port is the edge's: CONNECT, and paths below /x/
#pragma once

#include <cstdint>

#include "hub/connect_proxy.h"
#include "hub/edge.h"
#include "net/handler.h"

namespace cay::hub {

class SideDoor final : public net::Handler {
 public:
  SideDoor(Edge& edge, ConnectProxy& connects) : edge_(edge), connects_(connects) {}
  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override;

 private:
  Edge& edge_;
  ConnectProxy& connects_;
};

class FrontDoor final : public net::Handler {
 public:
  // Whether the API is served by TLS too, under the domain itself.
  enum class ApiByTls : uint8_t { kNo, kYes };

  FrontDoor(net::Handler& api, Edge& edge, const EdgeAddress& address, ApiByTls apiByTls)
      : api_(api), edge_(edge), address_(address), apiByTls_(apiByTls) {}

  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override;

 private:
  [[nodiscard]] bool isForApi(const net::RequestHead& head) const;

  net::Handler& api_;
  Edge& edge_;
  const EdgeAddress& address_;
  ApiByTls apiByTls_;
};

}  // namespace cay::hub
