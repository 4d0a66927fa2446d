// An event loop on a thread of its own, so that a test can talk to servers with plain blocking
// calls.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "net/task.h"

namespace cay::testing {

class LoopThread {
 public:
  LoopThread() : work_(boost::asio::make_work_guard(io_)), thread_([this] { io_.run(); }) {}
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  boost::asio::io_context& io() { return io_; }

  // Nothing runs on the loop any more; what waits there goes with this object.
  void stop() {
    work_.reset();
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  // Runs a task on the loop and waits for its value.
  template <typename T>
  T await(net::Task<T> task) {
    if constexpr (std::is_void_v<T>) {
      boost::asio::co_spawn(io_, std::move(task), boost::asio::use_future).get();
    } else {
      std::optional<T> value;  // co_spawn itself wants values that are default constructible
      boost::asio::co_spawn(io_, keep(std::move(task), value), boost::asio::use_future).get();
      return *std::move(value);
    }
  }

  // Calls a function on the loop's thread and waits for its value.
  template <typename Function>
  std::invoke_result_t<Function> call(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> packaged(std::move(function));
    auto result = packaged.get_future();
    boost::asio::post(io_, [&] { packaged(); });
    return result.get();
  }

 private:
  template <typename T>
  static net::Task<> keep(net::Task<T> task, std::optional<T>& value) {
    value.emplace(co_await std::move(task));
  }

  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<net::Executor> work_;
  std::thread thread_;
};

}  // namespace cay::testing
