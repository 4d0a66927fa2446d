// How every operation of Asio is awaited: errors come back as values, on the concrete executor.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/task.h"

namespace cay::net {

inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>());

}  // namespace cay::net
