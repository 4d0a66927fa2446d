// A few threads for work that blocks (files). A task that awaits run() resumes on its own loop.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
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
      co_await runErased([&] { work(); });
    } else {
      std::optional<Value> value;
      co_await runErased([&] { value.emplace(work()); });
      co_return *std::move(value);
    }
  }

 private:
  // One instance for every kind of work: each call of Asio's templates costs kilobytes of code.
  Task<> runErased(std::function<void()> work);

  boost::asio::thread_pool pool_;
};

}  // namespace cay::net
