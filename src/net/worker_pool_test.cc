#include "net/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <memory>
#include <thread>

#include "net/event.h"
#include "testing/loop_thread.h"

namespace cay::net {
namespace {

using cay::testing::LoopThread;

struct Threads {
  std::thread::id before, during, after;
  std::unique_ptr<int> value;
};

Task<Threads> visit(WorkerPool& pool) {
  Threads threads;
  threads.before = std::this_thread::get_id();
  std::thread::id during;
  threads.value = co_await pool.run([&during] {
    during = std::this_thread::get_id();
    return std::make_unique<int>(7);
  });
  threads.during = during;
  threads.after = std::this_thread::get_id();
  co_await pool.run([] {});
  co_return threads;
}

TEST(WorkerPool, RunsElsewhereAndComesBack) {
  LoopThread loop;
  WorkerPool pool(2);
  const Threads threads = loop.await(visit(pool));
  EXPECT_EQ(*threads.value, 7);
  EXPECT_EQ(threads.before, threads.after);
  EXPECT_NE(threads.before, threads.during);
}

Task<bool> cancelInTheMiddle(WorkerPool& pool, std::shared_ptr<std::atomic<bool>> finished) {
  using namespace boost::asio::experimental::awaitable_operators;
  auto slow = [finished] {
    std::this_thread::sleep_for(Millis(100));
    *finished = true;
  };
  co_await (pool.run(std::move(slow)) || sleepFor(Millis(1)));
  co_return *finished;
}

TEST(WorkerPool, WorkRunsToItsEndWhenTheTaskIsCancelled) {
  LoopThread loop;
  WorkerPool pool(1);
  EXPECT_TRUE(loop.await(cancelInTheMiddle(pool, std::make_shared<std::atomic<bool>>(false))));
}

Task<> startSlow(WorkerPool& pool, std::atomic<bool>& started) {
  co_await pool.run([&started] {
    started = true;
    std::this_thread::sleep_for(Millis(50));
  });
}

TEST(WorkerPool, MayEndWithWorkInProgressAndInTheQueue) {
  LoopThread loop;
  std::atomic<bool> started = false;
  {
    WorkerPool pool(1);
    for (int i = 0; i < 3; ++i) {
      boost::asio::co_spawn(loop.io(), startSlow(pool, started), boost::asio::detached);
    }
    while (!started) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace cay::net
