// One sandbox of a pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "layers/image.h"
#include "net/event.h"
#include "sandbox/activity.h"
#include "sandbox/gone_list.h"
#include "sandbox/pool_record.h"
#include "sandbox/sandbox.h"

namespace cay::sandbox {

class Registry;

// Whoever works on it across a wait holds it by its shared pointer.
struct Pooled {
  static constexpr int64_t kNever = INT64_MAX;

  Pooled(Registry& registry, PoolRecord record, std::shared_ptr<const layers::Image> image);

  // One that was made before it was asked for becomes what was asked for. Before anybody sees it.
  void become(PoolRecord record);

  PoolRecord record;
  const std::shared_ptr<const layers::Image> image;  // none if it is not there any more
  Sandbox sandbox;
  Activity activity;
  int64_t expiresAtMs;         // monotonic; kNever without a time to live
  std::optional<Death> death;  // set once it is out of the registry
  bool ended = false;          // after its death: nothing of it runs any more
  net::Event changed;
};
using PooledPtr = std::shared_ptr<Pooled>;

}  // namespace cay::sandbox
