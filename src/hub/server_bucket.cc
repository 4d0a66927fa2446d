#include "hub/server_bucket.h"

#include <fcntl.h>

#include <utility>

#include "base/fd.h"
#include "base/ids.h"
#include "base/text.h"
#include "hub/job_fields.h"
#include "sys/file.h"

namespace cay::hub {
namespace {

constexpr std::string_view kName = "sbx-server";
constexpr int kNotModified = 304;
constexpr int kNotImplemented = 501;

// Alone, or with the digest of the server that the client would rather have.
bool isServerName(std::string_view name) {
  return name == kName || (name.starts_with(kName) && name[kName.size()] == '-');
}

std::string tagOf(const sys::Stat& info) {
  return "\"" +
         fingerprint(std::to_string(info.st_ino) + " " + std::to_string(info.st_size) + " " +
                     std::to_string(info.st_mtim.tv_sec) + "." +
                     std::to_string(info.st_mtim.tv_nsec)) +
         "\"";
}

}  // namespace

net::Task<Result<>> sendServer(ApiCall& call) {
  if (!isServerName(call.steps.back())) {
    co_return fail(Code::kNotFound, "no such file in this bucket: " + quoted(call.steps.back()));
  }
  const auto file = sys::openAt(AT_FDCWD, call.state.serverFile.c_str(), O_RDONLY | O_CLOEXEC);
  // Without the words of the system: nobody needs a token for this, nor the names of our folders.
  if (!file) co_return fail(Code::kNotFound, "this hub cannot find its cay-host");
  CAY_CO_ASSIGN(const sys::Stat info, sys::statFd(file->get()));
  net::ResponseHead head = newHead(call);
  const std::string tag = tagOf(info);
  head.fields.add("ETag", tag);
  if (call.head.fields.get("If-None-Match") == tag) {
    head.status = kNotModified;
    co_return co_await net::send(call.response, std::move(head), {});
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  head.fields.add("Content-Type", "application/octet-stream");
  head.fields.add("Content-Length", std::to_string(size));
  CAY_CO_TRY(call.response.begin(std::move(head)));
  CAY_CO_TRY(co_await call.response.sendFile(file->get(), 0, size));
  co_return co_await call.response.finish();
}

net::Task<Result<>> refuseUploads(ApiCall& call) {
  std::string folder = call.state.bucketFolder;
  // "api", "buckets", a namespace, a bucket
  for (size_t i = 2; i < 4 && i < call.steps.size() && isPlainName(call.steps[i]); ++i) {
    folder.append("/").append(call.steps[i]);
  }
  const ApiError error{.status = kNotImplemented,
                       .message =
                           "local files and folders need the Xet store, which this hub does "
                           "not have: put them into " +
                           folder + " and mount that bucket",
                       .field = {}};
  co_return co_await refuse(call, error);
}

}  // namespace cay::hub
