// A store in a folder of its own, used with plain blocking calls.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "hub/store.h"
#include "testing/loop_thread.h"

namespace cay::hub {

class OpenStore {
 public:
  explicit OpenStore(const std::string& file) {
    auto opened = loop_.await(Store::open(file));
    if (!opened) throw std::runtime_error(opened.error().message);
    store_ = *std::move(opened);
  }

  Store* operator->() { return store_.get(); }
  // Ends the store first, while its loop still runs.
  ~OpenStore() { store_.reset(); }
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

  template <typename T>
  T await(net::Task<T> task) {
    return loop_.await(std::move(task));
  }
  cay::testing::LoopThread& loop() { return loop_; }

 private:
  cay::testing::LoopThread loop_;
  std::unique_ptr<Store> store_;
};

inline JobRow jobRow(int64_t seq, std::string ns = "tester") {
  JobRow row;
  row.seq = seq;
  row.id = "job" + std::to_string(seq);
  row.ns = std::move(ns);
  row.spec = R"({"command":["true"]})";
  row.secrets = "{}";
  row.initiatorType = "user";
  row.initiatorId = "5e9ecfc04957053f60648a3e";
  row.createdMs = 1000 + seq;
  return row;
}

inline TokenRow tokenRow(std::string id, std::string hash, std::string principal) {
  TokenRow row;
  row.id = std::move(id);
  row.hash = std::move(hash);
  row.role = "user";
  row.principal = std::move(principal);
  return row;
}

}  // namespace cay::hub
