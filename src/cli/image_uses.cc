#include "cli/image_uses.h"

#include "base/text.h"
#include "sandbox/pool_record.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::cli {
namespace {

constexpr size_t kMostRecordBytes = size_t{4} << 20;

}  // namespace

Result<std::set<std::string>> imagesOfJobs(const hub::Paths& paths) {
  std::set<std::string> digests;
  const std::string folder = paths.sandboxes() + "/sandboxes";
  const auto jobs = sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (!jobs && jobs.error().sys == ENOENT) return digests;
  if (!jobs) return std::unexpected(jobs.error());
  CAY_ASSIGN(const auto entries, sys::readDirectory(jobs->get()));
  for (const sys::DirEntry& entry : entries) {
    const auto text =
        sys::readFileAt(jobs->get(), (entry.name + "/record.json").c_str(), kMostRecordBytes);
    // Over meanwhile, or not a job yet.
    if (!text && text.error().sys == ENOENT) continue;
    const auto record = text ? sandbox::parseRecord(*text) : std::unexpected(text.error());
    if (!record) {
      return fail(Code::kConflict, "nothing was removed, since it cannot be known what the job " +
                                       quoted(entry.name) + " uses: " + record.error().message);
    }
    digests.insert(record->imageVersion);
  }
  return digests;
}

}  // namespace cay::cli
