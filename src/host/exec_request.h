// The JSON body of an exec or process start, checked and turned into what the sandbox runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/sandbox.h"

namespace cay::host {

enum class OutputEncoding { kText, kBase64 };

struct ExecDefaults {
  std::vector<std::string> env;  // NAME=value
  std::string cwd;               // absolute; relative ones in requests count from here
  // Folders in requests are rooted at `cwd`, as file paths are (files::Paths::kHome), unless they
  // lie in it by their real path.
  bool rootedAtHome = false;
};

struct ExecRequest {
  sandbox::StartRequest start;
  OutputEncoding encoding = OutputEncoding::kText;
};

// The error (kInvalid) names the field and what is wrong with it. `key` is the Idempotency-Key or
// empty.
Result<ExecRequest> parseExecRequest(std::string_view body, sandbox::Kind kind,
                                     std::string_view key, const ExecDefaults& defaults);

// "INT", "SIGINT" or 2 as a signal number; kInvalid for anything else.
Result<int> parseSignalRequest(std::string_view body);

Result<OutputEncoding> parseEncoding(std::string_view name);

}  // namespace cay::host
