#include "net/readable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

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

  asio::io_context io_;
  bool seen_ = false;

 private:
  Task<> follow(Fd descriptor) {
    const Fd back = co_await readable(std::move(descriptor));
    char byte = 0;
    seen_ = ::read(back.get(), &byte, 1) == 1;
  }
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

// The copy is what a child would have that has not got rid of our descriptors yet.
TEST_F(ReadableTest, AnothersWakeUpIsNotTakenForItsOwn) {
  sys::Pipe closed = *sys::makePipe();
  const Fd copy(::dup(closed.read.get()));
  {
    const Descriptor descriptor(io_.get_executor(), closed.read.release());
  }
  sys::Pipe pipe = *sys::makePipe();
  watch(std::move(pipe.read));
  ASSERT_EQ(::write(closed.write.get(), "x", 1), 1);
  turn();
  EXPECT_FALSE(seen_);
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  turn();
  EXPECT_TRUE(seen_);
}

}  // namespace
}  // namespace cay::net
