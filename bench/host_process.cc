#include "host_process.h"

#include <sys/stat.h>
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

HostProcess::HostProcess(std::string program, std::vector<std::string> variables)
    : program_(std::move(program)), variables_(std::move(variables)) {
  // A sandbox that has a user id and no root of its own has to reach its home.
  constexpr mode_t kPassable = 0711;
  if (::chmod(folder().c_str(), kPassable) != 0 || ::mkdir(state().c_str(), kPassable) != 0) {
    throw std::runtime_error("cannot make the state folder: " + errnoText(errno));
  }
  start();
}

HostProcess::~HostProcess() {
  stop();
}

void HostProcess::stop() {
  if (pid_ != 0) end(SIGTERM);
}

void HostProcess::killAndRestart() {
  end(SIGKILL);
  start();
}

void HostProcess::end(int signal) {
  ::kill(pid_, signal);
  waitFor(pid_);
  pid_ = 0;
}

void HostProcess::start() {
  auto pipe = sys::makePipe();
  if (!pipe) throw std::runtime_error(pipe.error().message);
  const std::string token = "SBX_TOKEN=" + std::string(this->token());
  std::vector<const char*> environment = {token.c_str(), "PATH=/usr/local/bin:/usr/bin:/bin"};
  for (const std::string& variable : variables_) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  const Command command = {program_, "--port", "0", "--listen", "127.0.0.1", "--state", state()};
  pid_ = spawn(command, environment.data(), STDERR_FILENO, pipe->write);
  pipe->write.reset();
  awaitListening(pipe->read);
  drains_.emplace_back([log = std::move(pipe->read)] {
    std::array<char, 4096> buffer;
    while (sys::readSome(log.get(), buffer).value_or(0) > 0) {
    }
  });
}

void HostProcess::awaitListening(const Fd& pipe) {
  std::string log;
  size_t at = 0;
  std::array<char, 4096> buffer;
  for (;;) {
    const size_t count = sys::readSome(pipe.get(), buffer).value_or(0);
    if (count == 0) throw std::runtime_error("cay-host did not start: " + log);
    log.append(buffer.data(), count);
    for (size_t end = log.find('\n', at); end != std::string::npos; end = log.find('\n', at)) {
      const auto line = json::parse(log.substr(at, end - at));
      at = end + 1;
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
