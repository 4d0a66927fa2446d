// Programs of the machine that the networks need: nft, slirp4netns. Looked for where a
// distribution's own programs lie, never in PATH. For processes with one thread: they may block.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cay::engine {

// Runs it to its end, in the network namespace of the caller and with an empty environment, and
// gives what it printed. A failure tells the first line of its complaint.
Result<std::string> runTool(std::string_view name, std::vector<std::string> arguments,
                            std::string_view input = {});

// Starts it; it gets `descriptors` from 3 on. What it says goes to /dev/null.
Result<pid_t> startTool(std::string_view name, std::vector<std::string> arguments,
                        std::span<const int> descriptors);

}  // namespace cay::engine
