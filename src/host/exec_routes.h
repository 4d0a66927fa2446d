// Commands over HTTP: /exec, /execs/{id}, /processes.
#pragma once

#include "base/error.h"
#include "host/call.h"
#include "host/exec_request.h"
#include "net/task.h"
#include "sandbox/sandbox.h"

namespace cay::host {

struct ExecService {
  sandbox::Sandbox& sandbox;
  ExecDefaults defaults;
};

// POST /exec
net::Task<Result<>> runExec(Call& call, ExecService& service);
// GET /execs/{id} and /execs/{id}/output
net::Task<Result<>> serveExecs(Call& call, ExecService& service);
// /processes and everything below
net::Task<Result<>> serveProcesses(Call& call, ExecService& service);

// GET …/output?stdout=&stderr=&follow=&encoding= of any exec.
net::Task<Result<>> sendOutput(Call& call, sandbox::Sandbox& sandbox, sandbox::ExecPtr exec);

// The Idempotency-Key of a request, or empty; kInvalid if it is absurd.
Result<std::string> idempotencyKey(const net::RequestHead& head);

}  // namespace cay::host
