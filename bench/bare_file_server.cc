#include "bare_file_server.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "client.h"
#include "sys/io.h"

namespace cay::bench {
namespace {

constexpr int kStopCheckMs = 50;

// What follows `name` in the head, up to `end`.
std::string after(std::string_view head, std::string_view name, char end) {
  const size_t at = head.find(name) + name.size();
  return std::string(head.substr(at, head.find(end, at) - at));
}

}  // namespace

BareFileServer::BareFileServer(std::string folder)
    : folder_(std::move(folder)), buffer_(Client::kBufferBytes) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (auto connection = listener_.accept(kStopCheckMs)) serve(*connection);
    }
  });
}

void BareFileServer::serve(testing::RawClient& connection) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  for (bool more = true; more;) {
    std::string head;
    size_t end = std::string::npos;
    while (end == std::string::npos) {
      const ssize_t count = ::recv(connection.fd(), buffer_.data(), buffer_.size(), 0);
      if (count <= 0) return;
      head.append(buffer_.data(), static_cast<size_t>(count));
      end = head.find(kHeadEnd);
    }
    end += kHeadEnd.size();
    const std::string path = folder_ + after(head, " ", ' ');
    more = head.starts_with("GET")
               ? sendFile(connection, path)
               : receiveFile(connection, path, std::string_view(head).substr(end),
                             std::stoull(after(head, "Content-Length: ", '\r')));
  }
}

bool BareFileServer::sendFile(testing::RawClient& connection, const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return false;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!connection.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n")) {
    return false;
  }
  off_t offset = 0;
  while (static_cast<uint64_t>(offset) < size) {
    if (::sendfile(connection.fd(), file.get(), &offset, size - offset) <= 0) return false;
  }
  return true;
}

bool BareFileServer::receiveFile(testing::RawClient& connection, const std::string& path,
                                 std::string_view begun, uint64_t size) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!sys::writeAll(file.get(), begun)) return false;
  for (uint64_t left = size - begun.size(); left > 0;) {
    const ssize_t count = ::recv(connection.fd(), buffer_.data(), buffer_.size(), 0);
    if (count <= 0) return false;
    const auto got = static_cast<size_t>(count);
    if (!sys::writeAll(file.get(), {buffer_.data(), got})) return false;
    left -= got;
  }
  return connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace cay::bench
