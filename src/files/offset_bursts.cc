#include "files/offset_bursts.h"

#include <algorithm>
#include <iterator>

namespace cay::files {

std::optional<uint64_t> OffsetBursts::Burst::tiledTo() const {
  if (exempt || spoiled || pieces.size() != 1 || pieces.begin()->first != 0) return std::nullopt;
  return pieces.begin()->second;
}

void OffsetBursts::Burst::forget() {
  pieces.clear();
  spoiled = false;
}

void OffsetBursts::Burst::add(uint64_t from, uint64_t to) {
  // Everything that touches the new range becomes one with it.
  auto first = pieces.upper_bound(from);
  if (first != pieces.begin() && std::prev(first)->second >= from) --first;
  auto last = first;
  for (; last != pieces.end() && last->first <= to; ++last) {
    from = std::min(from, last->first);
    to = std::max(to, last->second);
  }
  pieces.erase(first, last);
  pieces.emplace(from, to);
  if (pieces.size() > kMaxPieces) {
    pieces.clear();
    spoiled = true;
  }
}

void OffsetBursts::begin(const FileKey& file, uint64_t offset, int64_t nowMs) {
  if (!bursts_.contains(file)) makeRoom(nowMs);
  Burst& burst = bursts_[file];
  if (burst.writing == 0) {
    const bool expired = nowMs - burst.lastMs >= kExpiryMs;
    if (expired || offset < burst.tiledTo().value_or(0)) burst.forget();
  }
  ++burst.writing;
}

void OffsetBursts::exempt(const FileKey& file) {
  const auto found = bursts_.find(file);
  if (found == bursts_.end()) return;
  found->second.exempt = true;
  found->second.pieces.clear();
}

void OffsetBursts::wrote(const FileKey& file, uint64_t from, uint64_t to) {
  const auto found = bursts_.find(file);
  if (found == bursts_.end() || found->second.exempt || found->second.spoiled) return;
  if (from < to || from == 0) {
    found->second.add(from, to);
  } else {
    found->second.pieces.clear();  // nothing, written elsewhere than at 0, belongs to no upload
  }
}

bool OffsetBursts::shouldLinger(const FileKey& file) const {
  const auto found = bursts_.find(file);
  return found != bursts_.end() && found->second.writing == 1 &&
         found->second.tiledTo().has_value();
}

std::optional<uint64_t> OffsetBursts::finish(const FileKey& file, int64_t nowMs) {
  const auto found = bursts_.find(file);
  if (found == bursts_.end()) return std::nullopt;
  Burst& burst = found->second;
  burst.lastMs = nowMs;
  return --burst.writing == 0 ? burst.tiledTo() : std::nullopt;
}

void OffsetBursts::abandon(const FileKey& file, int64_t nowMs) {
  const auto found = bursts_.find(file);
  if (found == bursts_.end()) return;
  Burst& burst = found->second;
  --burst.writing;
  burst.lastMs = nowMs;
  burst.pieces.clear();
  burst.spoiled = true;
}

// Files being written are never dropped; there are no more of them than connections.
void OffsetBursts::makeRoom(int64_t nowMs) {
  if (bursts_.size() < kMaxFiles) return;
  std::erase_if(bursts_, [&](const auto& item) {
    const Burst& burst = item.second;
    return burst.writing == 0 && !burst.exempt && nowMs - burst.lastMs >= kExpiryMs;
  });
  if (bursts_.size() < kMaxFiles) return;
  auto oldest = bursts_.end();
  for (auto at = bursts_.begin(); at != bursts_.end(); ++at) {
    if (at->second.writing > 0) continue;
    if (oldest == bursts_.end() || at->second.lastMs < oldest->second.lastMs) oldest = at;
  }
  if (oldest != bursts_.end()) bursts_.erase(oldest);
}

}  // namespace cay::files
