// The JSON body of a create, checked and turned into what the registry makes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "isolation/plan.h"
#include "sandbox/registry.h"

namespace cay::host {

// What a sandbox gets where the request says nothing.
struct CreateDefaults {
  isolation::Mode mode = isolation::Mode::kFull;
  isolation::Limits limits = {};
  std::string whyNoDisks = {};              // why disks cannot be limited here; empty: they can
  std::vector<std::string> env = {};        // NAME=value; a request may change it
  std::vector<isolation::Bind> binds = {};  // of every sandbox
  std::vector<std::string> devices = {};    // the same
};

struct ParsedCreate {
  sandbox::Registry::CreateRequest request;
  std::vector<std::string> ignored;  // fields that mean nothing here
};

// kInvalid names the field and the value that is wrong; kExhausted (503) if what is asked for
// cannot be had on this machine. `key` is the Idempotency-Key or empty.
Result<ParsedCreate> parseCreate(std::string_view body, std::string_view key,
                                 const CreateDefaults& defaults);

// The limits of a machine with so much memory.
isolation::Limits defaultLimits(uint64_t memoryBytes);

}  // namespace cay::host
