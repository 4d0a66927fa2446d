// What a pooled sandbox uses of the machine now.
#pragma once

#include <cstdint>
#include <optional>

#include "isolation/limit_groups.h"
#include "sandbox/pool_folder.h"
#include "sandbox/pool_record.h"

namespace cay::host {

struct SandboxUsage {
  isolation::GroupUsage group;
  std::optional<uint64_t> diskBytes;  // unknown if there are too many files to count
};

// Blocking.
SandboxUsage readUsage(const isolation::LimitGroups& groups, const sandbox::PoolFolder& folder,
                       const sandbox::PoolRecord& record);

// The blocks that all files below a folder of `dir` take, if they are at most `most` files; what is
// not there takes none.
std::optional<uint64_t> bytesBelow(int dir, const std::string& name, size_t most);

}  // namespace cay::host
