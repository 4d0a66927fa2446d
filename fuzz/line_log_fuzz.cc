// Whatever lies in the folder of a job's log, reading it ends, and a writer can go on behind it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sandbox/line_log.h"
#include "sys/io.h"

namespace {

constexpr char kAfter[] = "after";
constexpr cay::sandbox::LineLogWriter::Shape kSmall{
    .headBytes = 400, .tailBytes = 600, .segmentBytes = 200};

int scratch() {
  static const int folder = [] {
    char name[] = "/dev/shm/cay-line-log-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    return ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }();
  return folder;
}

// The text of the last record.
std::string readAll(cay::sandbox::LineLogReader reader) {
  std::string last;
  while (true) {
    const auto line = reader.next();
    if (!line) std::abort();
    if (!*line) return last;
    last = (*line)->text;
  }
}

cay::sandbox::LineLogReader reader() {
  auto opened = cay::sandbox::LineLogReader::open(scratch(), "lines");
  if (!opened) std::abort();
  return std::move(*opened);
}

}  // namespace

// The first byte says where the rest is cut into two segments.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)::mkdirat(scratch(), "lines", 0700);
  const cay::Fd folder(::openat(scratch(), "lines", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int n = 0; n < 8; ++n) (void)::unlinkat(folder.get(), std::to_string(n).c_str(), 0);
  const size_t cut = all.size() * data[0] / 255;
  for (const int n : {0, 1}) {
    const cay::Fd file(
        ::openat(folder.get(), std::to_string(n).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    (void)cay::sys::writeAll(file.get(), n == 0 ? all.substr(0, cut) : all.substr(cut));
  }
  auto tail = reader();
  if (!tail.seekTail(data[0])) std::abort();
  (void)readAll(std::move(tail));
  (void)readAll(reader());
  {
    auto writer = cay::sandbox::LineLogWriter::open(scratch(), "lines", kSmall);
    if (!writer) std::abort();
    writer->append(cay::sandbox::kStdout, std::string(kAfter) + "\n", 1'700'000'000'000'000);
  }
  if (readAll(reader()) != kAfter) std::abort();
  return 0;
}
