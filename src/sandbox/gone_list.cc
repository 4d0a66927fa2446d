#include "sandbox/gone_list.h"

#include <fcntl.h>

#include <charconv>

#include "base/json.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr size_t kIdDigits = 16;
constexpr size_t kMostBytes = 64 << 20;  // of the file, when it is read
constexpr size_t kSpareLines = 10'000;   // of forgotten ones that the file may hold
constexpr char kHex[] = "0123456789abcdef";

// The digits at the end of an id.
std::optional<uint64_t> idBits(std::string_view id) {
  if (id.size() < kIdDigits) return std::nullopt;
  uint64_t bits = 0;
  const char* end = id.data() + id.size();
  const auto [at, error] = std::from_chars(end - kIdDigits, end, bits, 16);
  if (error != std::errc() || at != end) return std::nullopt;
  return bits;
}

template <size_t kBytes>
std::optional<std::array<uint8_t, kBytes>> bytesOf(std::string_view hex) {
  std::array<uint8_t, kBytes> out{};
  if (hex.size() != kBytes * 2) return std::nullopt;
  for (size_t i = 0; i < kBytes; ++i) {
    const char* digits = hex.data() + i * 2;
    const auto [at, error] = std::from_chars(digits, digits + 2, out[i], 16);
    if (error != std::errc() || at != digits + 2) return std::nullopt;
  }
  return out;
}

template <size_t kBytes>
std::string hexOf(const std::array<uint8_t, kBytes>& bytes) {
  std::string out;
  for (const uint8_t byte : bytes) out.append({kHex[byte >> 4], kHex[byte & 15]});
  return out;
}

std::string lineOf(std::string_view id, std::string_view token, Death death, int64_t atMs) {
  const json::Object line{
      {"id", id}, {"token", token}, {"cause", deathName(death)}, {"at_ms", atMs}};
  return json::serialize(line) + "\n";
}

std::optional<Death> deathOf(std::string_view name) {
  for (const Death death : {Death::kKilled, Death::kEvicted, Death::kExpired}) {
    if (deathName(death) == name) return death;
  }
  return std::nullopt;
}

}  // namespace

std::string_view deathName(Death death) {
  switch (death) {
    case Death::kKilled:
      return "killed";
    case Death::kEvicted:
      return "evicted";
    case Death::kExpired:
      return "expired";
  }
  return "unknown";
}

std::string goneText(std::string_view id, Death death) {
  const std::string_view why = death == Death::kKilled    ? "it was deleted"
                               : death == Death::kEvicted ? "nobody used it for its idle timeout"
                                                          : "its time to live was over";
  return "sandbox " + std::string(id) + " is gone: " + std::string(why);
}

Result<GoneList> GoneList::open(int directory, std::string name, int64_t nowMs) {
  GoneList list(directory, std::move(name));
  auto text = sys::readFileAt(directory, list.name_.c_str(), kMostBytes);
  if (text) list.load(*text, nowMs);
  if (!text && text.error().code != Code::kNotFound) return std::unexpected(text.error());
  CAY_TRY(list.rewrite());
  return list;
}

void GoneList::load(std::string_view text, int64_t nowMs) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1);
    const auto line = json::parse(text.substr(0, end));
    text.remove_prefix(end + 1);
    // The last line may have been cut when the host was killed.
    if (!line || !line->is_object()) continue;
    const json::Object& entry = line->get_object();
    const json::Value* id = entry.if_contains("id");
    const json::Value* token = entry.if_contains("token");
    const json::Value* cause = entry.if_contains("cause");
    const json::Value* at = entry.if_contains("at_ms");
    if (id == nullptr || !id->is_string() || token == nullptr || !token->is_string()) continue;
    if (cause == nullptr || !cause->is_string() || at == nullptr || !at->is_int64()) continue;
    if (const auto death = deathOf(cause->get_string())) {
      keep(id->get_string(), token->get_string(), *death, at->get_int64());
    }
  }
  forgetOld(nowMs);
}

bool GoneList::keep(std::string_view id, std::string_view token, Death death, int64_t atMs) {
  const auto bits = idBits(id);
  const auto bytes = bytesOf<std::tuple_size_v<TokenBytes>>(token);
  if (!bits || !bytes) return false;
  if (entries_.insert_or_assign(*bits, Stored{*bytes, atMs, death}).second) byAge_.push_back(*bits);
  return true;
}

void GoneList::forgetOld(int64_t nowMs) {
  while (!byAge_.empty()) {
    const auto oldest = entries_.find(byAge_.front());
    if (oldest->second.atMs + kKeptMs > nowMs && entries_.size() <= kMost) return;
    entries_.erase(oldest);
    byAge_.pop_front();
  }
}

Result<> GoneList::add(std::string_view id, std::string_view token, Death death, int64_t nowMs) {
  if (!keep(id, token, death, nowMs)) return fail(Code::kInternal, "not an id and a token");
  forgetOld(nowMs);
  if (lines_ > entries_.size() + kSpareLines) return rewrite();
  CAY_TRY(sys::writeAll(file_.get(), lineOf(id, token, death, nowMs)));
  ++lines_;
  return {};
}

Result<> GoneList::rewrite() {
  std::string text;
  for (const uint64_t bits : byAge_) {
    const Stored& entry = entries_.at(bits);
    std::string id(kIdDigits, '0');
    for (size_t i = 0; i < kIdDigits; ++i) id[i] = kHex[bits >> (60 - 4 * i) & 15];
    text += lineOf(id, hexOf(entry.token), entry.death, entry.atMs);
  }
  const std::string fresh = name_ + ".new";
  CAY_ASSIGN(Fd file, sys::openAt(directory_, fresh.c_str(),
                                  O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW, 0600));
  CAY_TRY(sys::writeAll(file.get(), text));
  CAY_TRY(sys::renameAt(directory_, fresh.c_str(), directory_, name_.c_str()));
  file_ = std::move(file);
  lines_ = entries_.size();
  return {};
}

std::optional<GoneList::Entry> GoneList::find(std::string_view id, int64_t nowMs) const {
  const auto bits = idBits(id);
  const auto found = bits ? entries_.find(*bits) : entries_.end();
  if (found == entries_.end() || found->second.atMs + kKeptMs <= nowMs) return std::nullopt;
  return Entry{.token = hexOf(found->second.token), .death = found->second.death};
}

}  // namespace cay::sandbox
