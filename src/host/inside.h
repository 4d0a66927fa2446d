// A sandbox that stands behind walls of its own, seen from outside: its files through the root that
// its keeper gives out, its servers through sockets of its own network.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "files/place.h"
#include "isolation/plan.h"
#include "net/dialer.h"
#include "sandbox/sandbox.h"

namespace cay::host {

// The files below its root. In full mode they are touched as the user that its root is outside; in
// unprivileged mode that is ourselves. Not for restricted mode, which has no roots.
Result<std::shared_ptr<const files::Place>> placeInside(Fd root, isolation::Mode mode,
                                                        uint32_t firstUid, const std::string& home,
                                                        files::Paths paths);

// By TCP sockets that the keeper makes in there: 127.0.0.1, then ::1.
class InsideDialer final : public net::Dialer {
 public:
  explicit InsideDialer(sandbox::Sandbox& sandbox) : sandbox_(sandbox) {}
  net::Task<Result<net::Stream>> dial(uint16_t port) override;

 private:
  sandbox::Sandbox& sandbox_;
};

// A stream over a socket that is connected already, or will be.
net::Stream streamOver(const net::Executor& executor, int family, Fd socket);

}  // namespace cay::host
