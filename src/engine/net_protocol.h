// What a hub and its cay-net say to each other over a seqpacket socket (sandbox/wire.h).
//
// cay-net speaks first: kReady, or kFailed and it is gone. Then it answers every request, in order:
// with what is said there, kDone, or kFailed.
#pragma once

#include <cstdint>

namespace cay::engine {

enum class NetRequest : uint8_t {
  kMake,      // text group: kNetwork
  kFind,      // u32 number: kNetwork
  kTakeDown,  // u32 number: kDone
  kKeep,      // u32 count, numbers: all others are taken down: kDone
  kSocket,    // u32 number, u8 1 for IPv6: kDone, with a TCP socket
  kTraffic,   // u32 number: kTraffic
  kShutdown,  // takes all down: kDone, and it is gone
};

enum class NetAnswer : uint8_t {
  kReady,    // u32 epoch, bool the networks lead out, text what the router's way out is
  kNetwork,  // u32 number, text address, text group; the namespace rides along
  kTraffic,  // u64 received, u64 sent
  kDone,
  kFailed,  // u8 Code, text why
};

// Of the socket that it listens on, in the state folder; it gets it as this descriptor.
inline constexpr char kNetSocket[] = "net.sock";
inline constexpr int kNetListener = 3;

}  // namespace cay::engine
