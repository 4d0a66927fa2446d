#include "net/worker_pool.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace cay::net {

namespace asio = boost::asio;

Task<> WorkerPool::runErased(std::function<void()> work) {
  constexpr asio::use_awaitable_t<Executor> kAwaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void()>(
      [this, &work](auto handler) {
        // The guard keeps the loop running while nothing but this work is under way.
        auto loop = asio::make_work_guard(asio::get_associated_executor(handler));
        asio::post(pool_, [&work, handler = std::move(handler), loop = std::move(loop)]() mutable {
          work();
          asio::post(loop.get_executor(), std::move(handler));
        });
      },
      kAwaitable);
}

}  // namespace cay::net
