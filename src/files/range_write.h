// Writing a range of a file in place, as parallel uploads of big files do.
//
// Makes the file, and its parents, if missing; never truncates by itself. `truncateTo` sets the
// size right after the range is written, whichever range carries it; OffsetBursts stands in for
// clients without it. Links are followed inside the root. What is no regular file is kConflict.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "files/offset_bursts.h"
#include "files/place.h"
#include "files/upload.h"

namespace cay::files {

// The bursts of one sandbox. The lock is held while a file is being shrunk, so that no range can
// begin between the decision and the cut.
struct BurstTable {
  std::mutex mutex;
  OffsetBursts bursts;
};

struct RangeOptions {
  uint64_t offset = 0;
  std::optional<uint64_t> truncateTo;
  std::optional<mode_t> mode;
};

class RangeUpload : public Upload {
 public:
  static Result<std::unique_ptr<RangeUpload>> open(const std::shared_ptr<const Place>& place,
                                                   std::shared_ptr<BurstTable> table,
                                                   std::string_view path,
                                                   const RangeOptions& options);
  RangeUpload(const RangeUpload&) = delete;
  RangeUpload& operator=(const RangeUpload&) = delete;
  ~RangeUpload() override;

  Result<> write(std::string_view piece) override;
  // All pieces are there. Then, for up to OffsetBursts::kLingerMs, commit() should wait while
  // shouldLinger().
  void complete();
  [[nodiscard]] bool shouldLinger() const;
  Result<> commit() override;

 private:
  RangeUpload(std::shared_ptr<BurstTable> table, Fd file, FileKey key, std::string path,
              const RangeOptions& options);
  Result<> shrink(uint64_t size) const;

  std::shared_ptr<BurstTable> table_;
  Fd file_;
  FileKey key_;
  std::string path_;
  RangeOptions options_;
  uint64_t at_;  // where the next piece goes
  bool ended_ = false;
};

}  // namespace cay::files
