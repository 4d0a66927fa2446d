#include <boost/asio/experimental/awaitable_operators.hpp>
#include <tuple>

#include "files/tar_pack.h"
#include "files/tar_unpack.h"
#include "host/body_pump.h"
#include "host/file_transfer.h"

namespace cay::host {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

// The packer and what it has filled, shared with the work that fills the next piece.
struct Packing {
  std::unique_ptr<files::TarPack> pack;
  std::string buffers[2] = {std::string(kPiece, '\0'), std::string(kPiece, '\0')};
};

net::Task<Result<size_t>> fill(FileService& service, std::shared_ptr<Packing> packing,
                               size_t index) {
  auto work = [packing = std::move(packing), index] {
    return packing->pack->read(packing->buffers[index]);
  };
  co_return co_await service.workers.run(std::move(work));
}

std::string countsJson(const files::UnpackCounts& counts) {
  return "{\"files\":" + std::to_string(counts.files) + ",\"dirs\":" + std::to_string(counts.dirs) +
         ",\"symlinks\":" + std::to_string(counts.symlinks) +
         ",\"skipped\":" + std::to_string(counts.skipped) +
         ",\"bytes\":" + std::to_string(counts.bytes) + "}";
}

}  // namespace

net::Task<Result<>> packTar(Call& call, FileService& service) {
  using namespace boost::asio::experimental::awaitable_operators;
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  const auto packing = std::make_shared<Packing>();
  auto open = [place = service.place, path = std::move(path), packing]() -> Result<> {
    CAY_ASSIGN(packing->pack, files::TarPack::open(place, path));
    return {};
  };
  CAY_CO_TRY(co_await service.workers.run(std::move(open)));
  // The first piece before the head, so that early errors are still a proper answer.
  CAY_CO_ASSIGN(size_t size, co_await fill(service, packing, 0));
  net::ResponseHead head;
  head.fields.add("Content-Type", "application/x-tar");
  CAY_CO_TRY(call.response.begin(std::move(head)));
  for (size_t current = 0;; current = 1 - current) {
    const std::string_view piece = std::string_view(packing->buffers[current]).substr(0, size);
    if (size < kPiece) co_return co_await call.response.finish(piece);
    auto [sent, next] =
        co_await (call.response.write(piece) && fill(service, packing, 1 - current));
    CAY_CO_TRY(sent);
    CAY_CO_ASSIGN(size, std::move(next));
  }
}

net::Task<Result<>> unpackTar(Call& call, FileService& service) {
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  auto open = [place = service.place, path = std::move(path)] {
    return files::TarUnpack::open(place, path);
  };
  CAY_CO_ASSIGN(std::shared_ptr<files::TarUnpack> unpack,
                co_await service.workers.run(std::move(open)));
  BodyPump pump(call.head, call.body, service.workers);
  CAY_CO_TRY(co_await pump.feed([unpack](std::string_view piece) { return unpack->write(piece); }));
  CAY_CO_ASSIGN(const files::UnpackCounts counts, unpack->finish());
  co_return co_await net::sendJson(call.response, 200, countsJson(counts));
}

}  // namespace cay::host
