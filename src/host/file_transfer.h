// Contents of files to and from the network. The routes themselves: see file_routes.h.
#pragma once

#include "base/error.h"
#include "host/call.h"
#include "host/file_routes.h"
#include "net/task.h"

namespace cay::host {

// GET /files/read?path=[&offset=][&length=]
net::Task<Result<>> readFile(Call& call, FileService& service);
// PUT /files/write?path=[&mode=][&offset=[&truncate_to=]]
net::Task<Result<>> writeFile(Call& call, FileService& service);
// GET /files/tar?path=
net::Task<Result<>> packTar(Call& call, FileService& service);
// PUT /files/tar?path=
net::Task<Result<>> unpackTar(Call& call, FileService& service);
// GET /files/watch?path=[&recursive=1]
net::Task<Result<>> watchFiles(Call& call, FileService& service);

}  // namespace cay::host
