// A keeper that says anything to its host, and writes anything into the log that the host reads.
//
// Holds: a command that is asked for comes to an end when the keeper is gone, whatever it said;
// nothing counts as running then; what is told of the end can be written as JSON; and reading the
// output ends, by its end or by an error.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "host/exec_stream.h"
#include "sandbox/sandbox.h"
#include "sys/io.h"
#include "sys/packet.h"

namespace {

using namespace cay;
using namespace cay::sandbox;

constexpr uint8_t kToLog = 0x80;  // not a message, but bytes for the log
// Above them all: every input ends with a keeper's death, which is an error to the log.
constexpr auto kSilent = static_cast<Level>(static_cast<int>(Level::kError) + 1);
constexpr size_t kMostPieces = 1000;  // of output, which may be told to be endless
constexpr LogShape kSmall{.headBytes = 512, .ringBytes = 512};

void require(bool holds) {
  if (!holds) std::abort();
}

int scratch() {
  static const int folder = [] {
    char name[] = "/dev/shm/cay-keeper-XXXXXX";
    require(::mkdtemp(name) != nullptr);
    const int made = ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(::mkdirat(made, "execs", 0700) == 0);
    return made;
  }();
  return folder;
}

class World {
 public:
  World() {
    Sandbox::Options options;
    options.folder = {.base = scratch(), .prefix = ""};
    options.shape = kSmall;
    options.spawnKeeper = [this](Fd listener) -> Result<> {
      host_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return {};
    };
    sandbox_.emplace(io_, std::move(options));
    boost::asio::co_spawn(io_, start(), boost::asio::detached);
    turn();
  }

  // What the next bytes of the input make the keeper do.
  void act(uint8_t kind, std::string_view bytes) {
    if ((kind & kToLog) != 0) {
      const uint64_t at = (kind & ~kToLog) * uint64_t{8};
      (void)sys::pwriteAll(log().get(), bytes, at);
      return;
    }
    Writer message;
    message.put(kind);
    const auto meant = static_cast<Message>(kind);
    const bool ofAnExec = meant >= Message::kLive && meant <= Message::kStdin;
    if (ofAnExec && meant != Message::kReady) message.put(std::string_view(id()));
    (void)sys::sendPacket(host_.get(), message.bytes() + std::string(bytes));
    turn();
  }

  void end() {
    host_.reset();
    turn();
    require(answered_);
    require(sandbox_->running() == 0);
    if (!started_) return;
    require(started_->exec->exit.has_value());
    (void)json::serialize(host::exitObject(*started_->exec));
    readAll();
    started_.reset();
    (void)::unlinkat(scratch(), ("execs/" + file_).c_str(), 0);
  }

 private:
  net::Task<> start() {
    StartRequest request;
    request.spec.argv = {"/bin/true"};
    auto started = co_await sandbox_->start(std::move(request));
    answered_ = true;
    if (started) started_ = std::move(*started);
  }

  void turn() {
    io_.restart();
    for (int i = 0; i < 8; ++i) io_.poll();
  }

  void readAll() {
    for (size_t i = 0; i < kMostPieces; ++i) {
      const auto piece = started_->follower->next();
      if (!piece || !*piece) return;
      require((*piece)->to > (*piece)->from);
    }
  }

  // As the host has asked for it.
  const std::string& id() {
    while (id_.empty()) {
      const auto packet = sys::receivePacket(host_.get());
      if (!packet || packet->data.empty()) break;
      Reader in(packet->data);
      if (in.get<Message>() != Message::kStart) continue;
      (void)getOffsets(in);
      (void)in.get<bool>();
      (void)in.get<uint64_t>();
      const ExecSpec spec = getSpec(in);
      id_ = spec.id;
      file_ = spec.file;
    }
    return id_;
  }

  const Fd& log() {
    (void)id();
    if (log_.valid()) return log_;
    require(LogWriter::create(scratch(), "execs/" + file_, kSmall, "{}",
                              LogWriter::Existing::kOverwrite)
                .has_value());
    log_ = Fd(::openat(scratch(), ("execs/" + file_).c_str(), O_WRONLY | O_CLOEXEC));
    return log_;
  }

  boost::asio::io_context io_{1};
  Fd host_;
  Fd log_;
  std::string id_;
  std::string file_;
  std::optional<Sandbox> sandbox_;
  bool answered_ = false;
  std::optional<Sandbox::Started> started_;
};

}  // namespace

// One act after another: what, how many bytes, and those.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  setLogLevel(kSilent);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  World world;
  while (rest.size() >= 2) {
    const auto kind = static_cast<uint8_t>(rest[0]);
    const auto length = static_cast<uint8_t>(rest[1]);
    rest.remove_prefix(2);
    world.act(kind, rest.substr(0, length));
    rest.remove_prefix(std::min<size_t>(length, rest.size()));
  }
  world.end();
  return 0;
}
