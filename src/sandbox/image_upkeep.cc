#include "sandbox/image_upkeep.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/log.h"

namespace cay::sandbox {

void ImageUpkeep::tick(int64_t nowMs, const std::function<Versions()>& inUse) {
  if (working_ || nowMs < lookAtMs_) return;
  working_ = true;
  lookAtMs_ = nowMs + kLookEveryMs;
  const bool remove = nowMs >= removeAtMs_;
  if (remove) removeAtMs_ = nowMs + kRemoveEveryMs;
  boost::asio::co_spawn(io_, work(remove, remove ? inUse() : Versions()), boost::asio::detached);
}

net::Task<> ImageUpkeep::work(bool remove, Versions inUse) {
  auto task = [this, remove, &inUse] {
    const Result<> looked = look();
    if (remove) removeUnused(std::move(inUse));
    return looked;
  };
  const Result<> looked = co_await worker_.run(std::move(task));
  const std::string complaint = looked ? "" : looked.error().message;
  if (!complaint.empty() && complaint != complaint_) {
    log(Level::kWarn, "the image 'host' could not be renewed", {{"error", complaint}});
  }
  complaint_ = complaint;
  working_ = false;
}

Result<> ImageUpkeep::look() {
  // Also the one before: a sandbox that is just being made may have got it.
  if (const auto image = images_.resolve(layers::kHostImage)) recent_.insert(image->version);
  CAY_TRY(images_.refresh());
  CAY_ASSIGN(const layers::Image image, images_.resolve(layers::kHostImage));
  recent_.insert(image.version);
  return {};
}

void ImageUpkeep::removeUnused(Versions inUse) {
  inUse.merge(Versions(recent_));
  images_.removeUnused(inUse);
  recent_.clear();
  if (const auto image = images_.resolve(layers::kHostImage)) recent_.insert(image->version);
}

}  // namespace cay::sandbox
