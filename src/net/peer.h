// Who a connection is with, by the address of its socket.
#pragma once

#include "net/http.h"

namespace cay::net {

// What the kernel says; without an address, and so not by the loopback, if it does not.
Peer peerOf(int socket);

}  // namespace cay::net
