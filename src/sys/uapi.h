// Kernel constants that Debian 12's headers do not have yet, by the version that brought them.
// Whether the running kernel knows them is found out by trying.
#pragma once

namespace cay::sys {

// Linux 6.9: pidfd_send_signal to the group that the process leads.
inline constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

}  // namespace cay::sys
