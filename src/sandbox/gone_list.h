// The dead of the last hour: what their tokens are told, and that they existed at all. Kept in a
// file too, one JSON object per line, so that a restart forgets nobody.
//
// On the loop's thread only. Entries are small and their number is bounded: of more deaths in an
// hour than that, the oldest are forgotten early.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sandbox {

// Why a sandbox is no more. A closed list: clients may switch over it.
enum class Death : uint8_t {
  kKilled,   // a client deleted it
  kEvicted,  // nobody used it for its idle timeout
  kExpired,  // its time to live was over
};
std::string_view deathName(Death death);
// What whoever still asks for it is told.
std::string goneText(std::string_view id, Death death);

class GoneList {
 public:
  static constexpr int64_t kKeptMs = 3'600'000;
  static constexpr size_t kMost = 100'000;

  // Takes up the file `name` of the directory, which must stay open; makes it if there is none.
  // Times are of the wall clock.
  static Result<GoneList> open(int directory, std::string name, int64_t nowMs);

  // Remembers a death, in the file first.
  Result<> add(std::string_view id, std::string_view token, Death death, int64_t nowMs);

  struct Entry {
    std::string token;
    Death death;
  };
  [[nodiscard]] std::optional<Entry> find(std::string_view id, int64_t nowMs) const;
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  // Ids and tokens are hex: as bytes they take a quarter of the room of strings.
  using TokenBytes = std::array<uint8_t, 32>;
  struct Stored {
    TokenBytes token{};
    int64_t atMs = 0;
    Death death = Death::kKilled;
  };

  GoneList(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
  void load(std::string_view text, int64_t nowMs);
  bool keep(std::string_view id, std::string_view token, Death death, int64_t atMs);
  void forgetOld(int64_t nowMs);
  Result<> rewrite();

  int directory_;
  std::string name_;
  Fd file_;  // for appending
  std::unordered_map<uint64_t, Stored> entries_;
  std::deque<uint64_t> byAge_;
  size_t lines_ = 0;  // in the file
};

}  // namespace cay::sandbox
