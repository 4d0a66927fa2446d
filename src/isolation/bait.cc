#include "isolation/bait.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "sys/io.h"
#include "sys/process.h"
#include "sys/socket.h"

namespace cay::isolation {
namespace {

constexpr size_t kSharedMemoryBytes = 4096;

std::string hostName() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

Result<Fd> listenAbstract(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const AbstractAddress address(name);
  if (!socket.valid() || ::bind(socket.get(), address.get(), address.length) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    return failSys("abstract socket", errno);
  }
  return socket;
}

Result<Fd> listenLoopback() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return sys::listenTcp(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Result<> writeForAll(const std::string& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.valid()) return failSys("open '" + path + "'", errno);
  // Whatever the umask says.
  if (::fchmod(file.get(), 0644) != 0) return failSys("chmod '" + path + "'", errno);
  return sys::writeAll(file.get(), "out of reach\n");
}

}  // namespace

std::string idMap() {
  std::string out;
  const std::string map = sys::readFile("/proc/self/uid_map").value_or("");
  for (const std::string_view word : words(map)) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

AbstractAddress::AbstractAddress(const std::string& name) {
  address.sun_family = AF_UNIX;
  const size_t size = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

std::vector<std::string> Bait::toArguments() const {
  return {"file=" + file, "socket=" + socket, "port=" + std::to_string(port),
          // Not a negative number, which the way back does not know.
          "memory-segment=" + (sharedMemory < 0 ? "none" : std::to_string(sharedMemory)),
          "process=" + std::to_string(process), "start=" + std::to_string(processStart),
          "host=" + hostName, "uid=" + std::to_string(uid), "ids=" + ids,
          std::string("network=") + (isOwn(network) ? "none" : "host"),
          "pids=" + std::to_string(pids), "memory=" + std::to_string(memoryBytes)};
}

Bait Bait::fromArguments(std::span<char* const> arguments) {
  Bait bait;
  for (const std::string_view argument : arguments) {
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view key = argument.substr(0, equals);
    const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
    const uint64_t number = parseUint(value).value_or(0);
    if (key == "file") bait.file = value;
    if (key == "socket") bait.socket = value;
    if (key == "port") bait.port = static_cast<uint16_t>(number);
    if (key == "memory-segment" && value != "none") bait.sharedMemory = static_cast<int>(number);
    if (key == "process") bait.process = static_cast<pid_t>(number);
    if (key == "start") bait.processStart = number;
    if (key == "host") bait.hostName = value;
    if (key == "uid") bait.uid = static_cast<uid_t>(number);
    if (key == "ids") bait.ids = value;
    if (key == "network" && value == "none") bait.network = Network::kNone;
    if (key == "pids") bait.pids = number;
    if (key == "memory") bait.memoryBytes = number;
  }
  return bait;
}

Result<LaidBait> LaidBait::lay(const std::string& folder, const Plan& plan) {
  LaidBait laid;
  const std::string id = randomHex(8);
  laid.bait_ = {.file = folder + "/bait-" + id,
                .socket = "cay-bait-" + id,
                .sharedMemory = ::shmget(IPC_PRIVATE, kSharedMemoryBytes, 0666),
                .process = ::getpid(),
                .processStart = sys::processStart(::getpid()).value_or(0),
                .hostName = hostName(),
                .uid = ::geteuid(),
                .ids = idMap(),
                .network = plan.network,
                .pids = plan.limits.pids,
                .memoryBytes = plan.limits.memoryBytes};
  CAY_TRY(writeForAll(laid.bait_.file));
  CAY_ASSIGN(laid.socket_, listenAbstract(laid.bait_.socket));
  CAY_ASSIGN(laid.port_, listenLoopback());
  CAY_ASSIGN(laid.bait_.port, sys::localPort(laid.port_.get()));
  return laid;
}

LaidBait::LaidBait(LaidBait&& other) noexcept
    : bait_(std::exchange(other.bait_, {})),
      socket_(std::move(other.socket_)),
      port_(std::move(other.port_)) {}

LaidBait::~LaidBait() {
  if (bait_.sharedMemory >= 0) ::shmctl(bait_.sharedMemory, IPC_RMID, nullptr);
  if (!bait_.file.empty()) ::unlink(bait_.file.c_str());
}

}  // namespace cay::isolation
