#include "sys/replace_file.h"

#include "sys/file.h"
#include "sys/io.h"

namespace cay::sys {

Result<> replaceFileAt(int dir, const std::string& path, std::string_view text) {
  const std::string half = path + ".new";
  {
    CAY_ASSIGN(const Fd file,
               openAt(dir, half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
    CAY_TRY(writeAll(file.get(), text));
  }
  return renameAt(dir, half.c_str(), dir, path.c_str());
}

}  // namespace cay::sys
