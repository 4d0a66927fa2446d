// Task<T>: what every function that waits returns. All tasks of a program run on one io_context
// thread, so data that only tasks touch needs no lock; blocking work goes through WorkerPool.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace cay::net {

// The concrete executor, instead of Asio's type-erased default, saves an allocation and an indirect
// call for each operation.
using Executor = boost::asio::io_context::executor_type;

template <typename T = void>
using Task = boost::asio::awaitable<T, Executor>;

}  // namespace cay::net
