// Bytes received and not yet consumed, in one contiguous piece.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cay::net {

class InputBuffer {
 public:
  explicit InputBuffer(std::string_view initial = {}) {
    const std::span<char> space = prepare(initial.size());
    std::ranges::copy(initial, space.begin());
    commit(initial.size());
  }

  [[nodiscard]] std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] size_t size() const { return end_ - begin_; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  void consume(size_t count) {
    begin_ += count;
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    // One large head does not make an idle connection large for ever.
    if (capacity_ > kKeptBytes) {
      data_.reset();
      capacity_ = 0;
    }
  }

  // Free space behind the content, at least `want` bytes; valid until the next call of another
  // member.
  std::span<char> prepare(size_t want) {
    if (capacity_ - end_ < want) makeRoom(want);
    return {data_.get() + end_, capacity_ - end_};
  }
  void commit(size_t count) { end_ += count; }

 private:
  static constexpr size_t kFirstBytes = size_t{4} * 1024;
  static constexpr size_t kKeptBytes = size_t{16} * 1024;

  void makeRoom(size_t want) {
    const size_t held = size();
    if (capacity_ - held >= want && begin_ >= held) {
      std::memcpy(data_.get(), data_.get() + begin_, held);
    } else {
      const size_t capacity = std::max({kFirstBytes, 2 * capacity_, held + want});
      auto larger = std::make_unique_for_overwrite<char[]>(capacity);
      if (held > 0) std::memcpy(larger.get(), data_.get() + begin_, held);
      data_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<char[]> data_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace cay::net
