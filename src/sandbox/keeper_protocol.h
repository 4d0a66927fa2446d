// What host and keeper say to each other: one seqpacket message each, a Message byte and then its
// fields in the order given here (wire.h writes and reads them). A message about an unknown exec is
// ignored, since either side may have finished with it a moment before.
#pragma once

#include <cstdint>

namespace cay::sandbox {

// Raised whenever a message changes, so that a host started from a newer program knows what it
// talks to.
inline constexpr uint32_t kKeeperProtocol = 3;
inline constexpr char kKeeperSocketName[] = "keeper.sock";

enum class Message : uint8_t {
  // Host to keeper.
  kStart,   // u64 limit x2, bool attended, u64 n: 0 and the spec; or a memory file rides along that
            // holds a spec of n bytes and then what is fed to standard input
  kWindow,  // id, u64 limit x2: read output up to here; kNoLimit when nobody reads along
  kAttended,    // id, bool: somebody listens, or nobody does any more
  kEnd,         // id, Cause, i64 grace in ms: TERM to the whole tree, KILL after the grace
  kSignal,      // id, i32 signal: to the command's process group
  kAskStdin,    // id: answered by kStdin
  kCloseStdin,  // id
  kShutdown,    // end everything and exit
  kAskRoot,     // answered by kRoot
  kAskSocket,   // answered by kSocket

  // Keeper to host.
  kRefused,      // text: the walls could not be raised, so there is no keeper; comes alone
  kHello,        // u32 protocol, mechanism of process trees, why not cgroups; its pidfd rides along
  kLive,         // id, i32 pid, u64 total x2, u64 lostFrom x2, bool leader still runs; one for each
  kReady,        // the list is complete
  kStarted,      // id, i32 pid; left out when kProgress or kExit follow at once
  kStartFailed,  // id, StartFault, i32 exit code, text; with kCommand the log has it all
  kProgress,     // id, i32 pid, u64 total x2, u64 lostFrom x2
  kExit,         // id, exit record, u64 lostFrom x2, bool gone: kGone is not sent then
  kGone,         // id, u64 total x2, u64 lostFrom x2: all of it has ended and its pipes are closed
  kStdin,        // id, bool; true: the write end rides along
  kRoot,         // bool; true: the directory that file paths start from rides along
  kSocket,       // bool; true: a TCP socket of the sandbox's network rides along, not connected
};

}  // namespace cay::sandbox
