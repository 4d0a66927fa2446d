#include "host/disconnect_watch.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <exception>

namespace cay::host {

void DisconnectWatch::start(const net::Executor& executor) {
  running_ = true;
  boost::asio::co_spawn(executor, response_.disconnected(),
                        boost::asio::bind_cancellation_slot(
                            cancel_.slot(), [this](const std::exception_ptr& cancelled) {
                              running_ = false;
                              if (!cancelled) {
                                gone_ = true;
                                wake_.notifyAll();
                              }
                              ended_.notifyAll();
                            }));
}

net::Task<> DisconnectWatch::stop() {
  if (running_) cancel_.emit(boost::asio::cancellation_type::terminal);
  while (running_) co_await ended_.wait();
}

}  // namespace cay::host
