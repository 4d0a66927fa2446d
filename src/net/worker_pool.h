// A few threads for work that blocks (files). A task that awaits run() resumes on its own loop.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "net/task.h"

namespace cay::net {

// Must be destroyed before the io_context of the tasks that wait for it: its end waits for running
// work, which then reports to that loop.
class WorkerPool {
 public:
  explicit WorkerPool(size_t threads) : pool_(threads) {}

  // Runs `work` on a pool thread and gives its value. `work` must not throw, and must own or
  // outlive what it uses. It runs to its end, and only then does the awaiting task resume,
  // cancelled or not.
  template <typename Work>
  Task<std::invoke_result_t<Work>> run(Work work) {
    using Value = std::invoke_result_t<Work>;
    if constexpr (std::is_void_v<Value>) {
      co_await start<void()>([work = std::move(work)](auto complete) mutable {
        work();
        complete();
      });
    } else {
      // Optional, because a pending operation's result must be default constructible.
      std::optional<Value> value = co_await start<void(std::optional<Value>)>(
          [work = std::move(work)](auto complete) mutable { complete(work()); });
      co_return *std::move(value);
    }
  }

 private:
  // Runs job(complete) on a pool thread, where complete(values…) resumes the awaiting task on its
  // loop.
  template <typename Signature, typename Job>
  auto start(Job job) {
    namespace asio = boost::asio;
    return asio::async_initiate<const asio::use_awaitable_t<Executor>, Signature>(
        [pool = &pool_](auto handler, Job job) {
          auto loop = asio::get_associated_executor(handler);
          auto keepsLoopRunning = asio::make_work_guard(loop);
          asio::post(*pool, [job = std::move(job), handler = std::move(handler),
                             keepsLoopRunning = std::move(keepsLoopRunning)]() mutable {
            job([&](auto... values) {
              const Executor loop = keepsLoopRunning.get_executor();
              asio::post(loop,
                         [handler = std::move(handler), ... values = std::move(values)]() mutable {
                           std::move(handler)(std::move(values)...);
                         });
            });
          });
        },
        kAwaitable, std::move(job));
  }

  static constexpr boost::asio::use_awaitable_t<Executor> kAwaitable{};

  boost::asio::thread_pool pool_;
};

}  // namespace cay::net
