// A folder of small files that nobody but its owner can change, for keys. While it is open, other
// openers wait, in this process and in others. Blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::hub {

class PrivateFolder {
 public:
  // Makes it (0700) if it is missing, and sweeps away what a crash has left half written. kConflict
  // if somebody else could have written in it.
  static Result<PrivateFolder> open(const std::string& path);

  // nullopt if there is no such file. Links are not followed.
  [[nodiscard]] Result<std::optional<std::string>> read(const std::string& name) const;
  // The same, but kConflict if others can read it, so that it is no secret.
  [[nodiscard]] Result<std::optional<std::string>> readSecret(const std::string& name) const;
  // Appears whole or not at all. kForever: a power failure right afterwards does not undo it.
  enum class Lasts : uint8_t { kForever, kUntilPowerFails };
  Result<> write(const std::string& name, std::string_view text, mode_t mode, Lasts lasts);
  Result<> remove(const std::string& name);
  [[nodiscard]] Result<std::vector<std::string>> names() const;

 private:
  explicit PrivateFolder(Fd folder) : folder_(std::move(folder)) {}
  [[nodiscard]] Result<std::optional<std::string>> readFile(const std::string& name,
                                                            bool secret) const;

  Fd folder_;
};

}  // namespace cay::hub
