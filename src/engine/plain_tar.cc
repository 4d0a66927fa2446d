#include "engine/plain_tar.h"

#include <array>
#include <string_view>

#include "sys/io.h"

namespace cay::engine {
namespace {

struct Format {
  std::string_view magic;
  const char* tool;
};
constexpr std::array kFormats = {Format{"\x1F\x8B", "gzip"}, Format{"\x28\xB5\x2F\xFD", "zstd"}};

}  // namespace

Result<PlainTar> PlainTar::open(Fd file) {
  std::array<char, 4> start{};
  CAY_ASSIGN(const size_t got, sys::preadSome(file.get(), start, 0));
  for (const Format& format : kFormats) {
    if (!std::string_view(start.data(), got).starts_with(format.magic)) continue;
    CAY_ASSIGN(std::string program, findTool(format.tool, format.tool));
    CAY_ASSIGN(sys::Pipe pipe, sys::makePipe());
    CAY_ASSIGN(ToolProcess tool, ToolProcess::start({.program = std::move(program),
                                                     .arguments = {"-dc"},
                                                     .in = file.get(),
                                                     .out = pipe.write.get(),
                                                     .confined = true}));
    return PlainTar(std::move(pipe.read), std::move(tool));
  }
  return PlainTar(std::move(file), std::nullopt);
}

Result<> PlainTar::finish() {
  bytes_.reset();
  if (!tool_) return {};
  auto done = tool_->wait();
  if (!done) {
    return fail(Code::kInvalid, "it cannot be decompressed: " + done.error().message);
  }
  return {};
}

}  // namespace cay::engine
