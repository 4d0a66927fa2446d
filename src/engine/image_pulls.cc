#include "engine/image_pulls.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <csignal>

#include "base/text.h"
#include "engine/child_process.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr size_t kMostSaid = 64 << 10;
constexpr size_t kMostTold = 500;

// The last line that is not empty.
std::string lastLine(std::string_view text) {
  std::string_view last;
  for (const std::string_view line : split(text, '\n')) {
    if (!trim(line).empty()) last = trim(line);
  }
  return toValidUtf8(last.substr(0, kMostTold));
}

std::string whatItSaid(const Fd& said) {
  std::string out(kMostSaid, '\0');
  const off_t size = ::lseek(said.get(), 0, SEEK_END);
  const auto from = static_cast<uint64_t>(std::max<off_t>(0, size - static_cast<off_t>(kMostSaid)));
  const auto got = sys::preadSome(said.get(), out, from);
  out.resize(got.value_or(0));
  return lastLine(out);
}

// A proxy or a certificate of the machine may be the only way out.
std::vector<std::string> ownEnvironment() {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) out.emplace_back(*at);
  return out;
}

}  // namespace

std::string imageHelp(std::string_view image) {
  const std::string name(image);
  return "`cay image pull " + name + "` where there is a network, `cay image import " + name +
         " FOLDER`, or `cay image alias " + name + " host`";
}

ImagePulls::~ImagePulls() {
  for (const auto& [image, running] : running_) {
    (void)sys::pidfdSignal(running.process, SIGKILL);
  }
}

std::shared_ptr<ImagePulls::Pull> ImagePulls::begin(const std::string& image) {
  const auto found = running_.find(image);
  if (found != running_.end()) return found->second.pull;
  auto pull = std::make_shared<Pull>();
  running_[image].pull = pull;
  start(image);
  return pull;
}

void ImagePulls::start(const std::string& image) {
  // What could be taken for an option is no name of an image.
  if (command_.empty() || image.starts_with('-')) {
    return finish(image, fail(Code::kNotFound,
                              "image " + quoted(image) + " is not here: " + imageHelp(image)));
  }
  auto said = sys::memoryFile("cay-pull", "");
  if (!said) return finish(image, std::unexpected(std::move(said).error()));
  std::vector<std::string> arguments(command_.begin() + 1, command_.end());
  arguments.push_back(image);
  auto born = startChild({.program = command_.front(),
                          .arguments = std::move(arguments),
                          .environment = ownEnvironment(),
                          .descriptors = {-1, -1, said->get()},
                          .groups = {},
                          .endsWithUs = true});
  if (!born) return finish(image, std::unexpected(std::move(born).error()));
  running_.at(image).process = Fd(::fcntl(born->pidfd.get(), F_DUPFD_CLOEXEC, 0));
  boost::asio::co_spawn(io_, await(this, image, std::move(born->pidfd), *std::move(said)),
                        boost::asio::detached);
}

net::Task<> ImagePulls::await(ImagePulls* self, std::string image, Fd pidfd, Fd said) {
  const int status = co_await childEnded(std::move(pidfd));
  if (status == 0) {
    self->finish(image, {});
    co_return;
  }
  self->finish(image, fail(Code::kUnreachable, "image " + quoted(image) +
                                                   " is not here and could not be brought (" +
                                                   whatItSaid(said) + "): " + imageHelp(image)));
}

void ImagePulls::finish(const std::string& image, Result<> result) {
  const auto found = running_.extract(image);
  found.mapped().pull->result = std::move(result);
  found.mapped().pull->changed.notifyAll();
}

}  // namespace cay::engine
