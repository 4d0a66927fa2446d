// Sockets: non-blocking transfers that never raise SIGPIPE where the kernel can help it, and
// listeners.
//
// The transfers are on the hot path, so instead of a Result they give the count of bytes or -errno
// (-EAGAIN: not now). EINTR is retried.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

enum class More { kNo, kYes };  // kYes: hold the bytes back until more follow

ssize_t receive(int socket, std::span<char> buffer);
// Looks at the next bytes without taking them.
ssize_t peek(int socket, std::span<char> buffer);
ssize_t send(int socket, std::span<const iovec> pieces, More more);
// Has no MSG_NOSIGNAL: the process must ignore SIGPIPE.
ssize_t sendFile(int socket, int file, uint64_t offset, size_t count);

// True once the peer has closed its side or the connection has failed, also behind unread bytes.
bool peerHasClosed(int socket);

// A listening TCP socket whose accepted sockets inherit TCP_NODELAY and keepalive probes, so that a
// dead peer is noticed in two minutes.
Result<Fd> listenTcp(const sockaddr* address, socklen_t length);
// The same of a socket that somebody else has made to listen, by TCP or on a Unix path; kInvalid if
// it does not.
Result<> takeListener(int listener);
// The next connection, non-blocking and close-on-exec, or -errno.
int accept(int listener);
// The port a socket is bound to.
Result<uint16_t> localPort(int socket);

// A stream connection to the Unix socket that an O_PATH descriptor stands for. Never blocks: EAGAIN
// when the queue of its server is full.
Result<Fd> connectUnix(int path);

// Two connected stream sockets, non-blocking.
Result<std::pair<Fd, Fd>> streamPair();

// Makes close() cut the connection by a reset instead of ending it in order.
void resetOnClose(int socket);

}  // namespace cay::sys
