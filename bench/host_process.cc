#include "host_process.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>

#include "base/json.h"
#include "client.h"
#include "sandbox/descendants.h"
#include "spawn.h"
#include "sys/io.h"

namespace cay::bench {

HostProcess::HostProcess(const std::string& program) {
  auto pipe = sys::makePipe();
  if (!pipe) throw std::runtime_error(pipe.error().message);
  const std::string token = "SBX_TOKEN=" + std::string(this->token());
  const char* const environment[] = {token.c_str(), "PATH=/usr/local/bin:/usr/bin:/bin", nullptr};
  const Command command = {
      program, "--port", "0", "--listen", "127.0.0.1", "--state", files_.path() / "state"};
  pid_ = spawn(command, environment, STDERR_FILENO, pipe->write);
  log_ = std::move(pipe->read);
  pipe->write.reset();
  awaitListening();
  drain_ = std::jthread([fd = log_.get()] {
    std::array<char, 4096> buffer;
    while (sys::readSome(fd, buffer).value_or(0) > 0) {
    }
  });
}

HostProcess::~HostProcess() {
  ::kill(pid_, SIGTERM);
  waitFor(pid_);
}

void HostProcess::awaitListening() {
  std::string log;
  std::array<char, 4096> buffer;
  for (;;) {
    const size_t count = sys::readSome(log_.get(), buffer).value_or(0);
    if (count == 0) throw std::runtime_error("cay-host did not start: " + log);
    log.append(buffer.data(), count);
    for (size_t end = log.find('\n'); end != std::string::npos; end = log.find('\n')) {
      const auto line = json::parse(log.substr(0, end));
      log.erase(0, end + 1);
      if (!line || line->at("message") != "listening") continue;
      port_ = static_cast<uint16_t>(line->at("port").as_int64());
      return;
    }
  }
}

pid_t HostProcess::keeper() const {
  const auto children = sandbox::descendantsOf(pid_);
  if (children.empty()) throw std::runtime_error("there is no keeper");
  return children.front().pid;
}

std::string HostProcess::execRequest(std::string_view body) const {
  return request("POST", "/v1/exec", token(), body);
}

void HostProcess::fillRecords() const {
  constexpr int kMoreThanKept = 600;
  Client client(port());
  const std::string request = execRequest(R"({"cmd":["/bin/true"]})");
  for (int i = 0; i < kMoreThanKept; ++i) client.ask(request);
}

}  // namespace cay::bench
