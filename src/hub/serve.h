// `cay serve`: the hub, from its start to its end.
#pragma once

#include "hub/options.h"

namespace cay::hub {

// Until SIGTERM or SIGINT. Prints one line of JSON when clients can come:
//   {"ready":true,"api":"http://127.0.0.1:7340","tls_port":7343,"domain":"cay.localhost","state":…}
// 1, and a line on stderr, if it cannot start.
int serve(const ServeOptions& options);

}  // namespace cay::hub
