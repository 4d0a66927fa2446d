#include "net/readable.h"

#include <poll.h>

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>

#include "net/await.h"

namespace cay::net {

Task<Fd> readable(Fd descriptor) {
  using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;
  Descriptor watched(co_await boost::asio::this_coro::executor, descriptor.release());
  const auto isReadable = [&] {
    pollfd asked{.fd = watched.native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&asked, 1, 0) > 0;
  };
  while (!isReadable()) {
    const auto [error] = co_await watched.async_wait(Descriptor::wait_read, kAwait);
    if (error) break;
  }
  co_return Fd(watched.release());
}

}  // namespace cay::net
