#include "net/readable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <optional>

#include "net/await.h"
#include "sys/io.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::basic_stream_descriptor<Executor>;

class ReadableTest : public ::testing::Test {
 protected:
  void watch(Fd descriptor) {
    asio::co_spawn(io_, follow(std::move(descriptor)), asio::detached);
    turn();
  }
  void turn() {
    io_.restart();
    for (int i = 0; i < 5; ++i) io_.poll();
  }

  Task<> follow(Fd descriptor) {
    const Fd back = co_await readable(std::move(descriptor));
    ++looked_;
    char byte = 0;
    seen_ = ::read(back.get(), &byte, 1) == 1;
  }

  Task<> swap(Descriptor& first, std::optional<Descriptor>& closed, Fd next) {
    (void)co_await first.async_wait(Descriptor::wait_read, kAwait);
    closed.reset();
    co_await follow(std::move(next));
  }

  asio::io_context io_;
  int looked_ = 0;
  bool seen_ = false;
};

TEST_F(ReadableTest, GivesBackWhatHasSomethingToRead) {
  sys::Pipe pipe = *sys::makePipe();
  watch(std::move(pipe.read));
  EXPECT_FALSE(seen_);
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  turn();
  EXPECT_TRUE(seen_);
}

TEST_F(ReadableTest, WhatIsThereAlreadyNeedsNoWaiting) {
  sys::Pipe pipe = *sys::makePipe();
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  watch(std::move(pipe.read));
  EXPECT_TRUE(seen_);
}

// Two descriptors have news. The first closes the second and waits for a third, which stands in the
// place of the second when its turn comes.
TEST_F(ReadableTest, AnothersWakeUpIsNotTakenForItsOwn) {
  sys::Pipe first = *sys::makePipe();
  sys::Pipe second = *sys::makePipe();
  sys::Pipe third = *sys::makePipe();
  Descriptor closing(io_.get_executor(), first.read.release());
  auto closed = std::make_optional<Descriptor>(io_.get_executor(), second.read.release());
  asio::co_spawn(io_, swap(closing, closed, std::move(third.read)), asio::detached);
  turn();
  ASSERT_EQ(::write(first.write.get(), "x", 1), 1);
  ASSERT_EQ(::write(second.write.get(), "x", 1), 1);
  turn();
  EXPECT_FALSE(closed);
  EXPECT_EQ(looked_, 0) << "nothing was there to be read";
  ASSERT_EQ(::write(third.write.get(), "x", 1), 1);
  turn();
  EXPECT_TRUE(seen_);
}

}  // namespace
}  // namespace cay::net
