// Bringing images here for jobs that wait for them: by a process of its own for each image, however
// many jobs wait. On the loop's thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "net/event.h"
#include "net/task.h"

namespace cay::engine {

class ImagePulls {
 public:
  // See LocalOptions::pullCommand.
  ImagePulls(boost::asio::io_context& io, std::vector<std::string> command)
      : io_(io), command_(std::move(command)) {}
  ~ImagePulls();

  struct Pull {
    std::optional<Result<>> result;  // once it is over
    net::Event changed;
  };
  // The pull of this image that is under way, or a new one.
  std::shared_ptr<Pull> begin(const std::string& image);

 private:
  struct Running {
    std::shared_ptr<Pull> pull;
    Fd process;
  };

  void start(const std::string& image);
  static net::Task<> await(ImagePulls* self, std::string image, Fd pidfd, Fd said);
  void finish(const std::string& image, Result<> result);

  boost::asio::io_context& io_;
  std::vector<std::string> command_;
  std::map<std::string, Running> running_;
};

// What is told where an image cannot be had.
std::string imageHelp(std::string_view image);

}  // namespace cay::engine
