// The file routes: /files/{read,write,list,stat,delete,mkdir,move,tar,watch} below a sandbox's
// prefix.
//
// Everything that touches the file system runs on the worker pool; the loop only moves bytes. Work
// on the pool owns what it uses, so that it may end after the request that started it.
#pragma once

#include <memory>

#include "base/error.h"
#include "files/place.h"
#include "files/range_write.h"
#include "host/call.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::host {

// The files of one sandbox.
struct FileService {
  std::shared_ptr<const files::Place> place;
  net::WorkerPool& workers;
  std::shared_ptr<files::BurstTable> bursts = std::make_shared<files::BurstTable>();
};

net::Task<Result<>> serveFiles(Call& call, FileService& service);

// The parameter `path`, kInvalid if it is missing.
Result<std::string> pathOf(const Call& call);

}  // namespace cay::host
