#include "files/range_write.h"

#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "files/entry.h"
#include "files/whole_write.h"
#include "sys/io.h"

namespace cay::files {

Result<std::unique_ptr<RangeUpload>> RangeUpload::open(const std::shared_ptr<const Place>& place,
                                                       std::shared_ptr<BurstTable> table,
                                                       std::string_view path,
                                                       const RangeOptions& options) {
  if (options.offset > INT64_MAX || options.truncateTo.value_or(0) > INT64_MAX) {
    return fail(Code::kInvalid, "no file can be that long");
  }
  CAY_ASSIGN(const auto acting, place->act());
  CAY_ASSIGN(std::string absolute, prepareTarget(*place, path));
  // Looked at before it is opened: the opening alone of a FIFO or a device can wait or have
  // effects.
  if (const auto found = place->open(absolute, O_PATH)) {
    CAY_ASSIGN(const sys::Stat before, sys::statFd(found->get()));
    CAY_TRY(requireRegular(before, absolute));
  }
  CAY_ASSIGN(Fd file, place->open(absolute, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY, 0666));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(file.get()));
  CAY_TRY(requireRegular(stat, absolute));
  if (options.mode && *options.mode != (stat.st_mode & 07777)) {
    CAY_TRY(named(sys::chmodFd(file.get(), *options.mode), absolute));
  }
  const FileKey key{
      .device = stat.st_dev, .inode = stat.st_ino, .bornNs = sys::birthNs(file.get())};
  return std::unique_ptr<RangeUpload>(
      new RangeUpload(std::move(table), std::move(file), key, std::move(absolute), options));
}

RangeUpload::RangeUpload(std::shared_ptr<BurstTable> table, Fd file, FileKey key, std::string path,
                         const RangeOptions& options)
    : table_(std::move(table)),
      file_(std::move(file)),
      key_(key),
      path_(std::move(path)),
      options_(options),
      at_(options.offset) {
  const std::lock_guard lock(table_->mutex);
  table_->bursts.begin(key_, options_.offset, monotonicMs());
  if (options_.truncateTo) table_->bursts.exempt(key_);
}

RangeUpload::~RangeUpload() {
  if (ended_) return;
  const std::lock_guard lock(table_->mutex);
  table_->bursts.abandon(key_, monotonicMs());
}

Result<> RangeUpload::write(std::string_view piece) {
  if (piece.size() > INT64_MAX - at_) return failPath(sysError("pwrite", EFBIG), path_);
  CAY_TRY(named(sys::pwriteAll(file_.get(), piece, at_), path_));
  at_ += piece.size();
  return {};
}

void RangeUpload::complete() {
  const std::lock_guard lock(table_->mutex);
  table_->bursts.wrote(key_, options_.offset, at_);
}

bool RangeUpload::shouldLinger() const {
  const std::lock_guard lock(table_->mutex);
  return table_->bursts.shouldLinger(key_);
}

Result<> RangeUpload::commit() {
  if (options_.truncateTo) {
    CAY_TRY(named(sys::truncateFd(file_.get(), *options_.truncateTo), path_));
  }
  const std::lock_guard lock(table_->mutex);
  ended_ = true;
  const auto end = table_->bursts.finish(key_, monotonicMs());
  return end ? shrink(*end) : Result<>();
}

Result<> RangeUpload::shrink(uint64_t size) const {
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(file_.get()));
  if (static_cast<uint64_t>(stat.st_size) <= size) return {};
  return named(sys::truncateFd(file_.get(), size), path_);
}

}  // namespace cay::files
