// What a hub is to a cay-host, without a hub: makes sandboxes and gives their keepers away.
//
//   hub_sandbox_maker STATE     ends with its standard input, and all its sandboxes with it
//
// Answers each line of its input with one; both are JSON objects:
//
//   {"make": ID, "log_bytes": N}   a sandbox whose commands keep so much output, in a network of
//   its
//                                  own; {"folder", "first_uid"}
//   {"end": ID}                    {}
//   {"image": true}                what sandboxes are made of, as cay-host is told (startup.h)
#include <fcntl.h>
#include <sched.h>

#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/json.h"
#include "host/startup.h"
#include "isolation/limit_groups.h"
#include "layers/image_store.h"
#include "sandbox/nursery.h"
#include "sandbox/registry.h"
#include "sys/file.h"
#include "sys/namespaces.h"
#include "testing/loop_thread.h"

namespace {

using cay::Code;
using cay::Fd;
using cay::Result;
using cay::isolation::Mode;
using cay::isolation::Network;
using cay::sandbox::Nursery;
using cay::sandbox::PooledPtr;
using cay::sandbox::Registry;
namespace json = cay::json;

Result<Fd> newNetwork() {
  Result<Fd> made;
  // Only that thread is ever in it.
  std::thread([&made] {
    if (auto apart = cay::sys::unshare(CLONE_NEWNET); !apart) {
      made = std::unexpected(std::move(apart).error());
    } else {
      made = cay::sys::openAt(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY);
    }
  }).join();
  return made;
}

class Maker {
 public:
  Result<> open(const std::string& state) {
    CAY_ASSIGN(auto folder, cay::sandbox::PoolFolder::open(state));
    CAY_TRY(folder.fitFor(Mode::kFull));
    groupName_ = folder.name();
    sandboxes_ = folder.sandboxesPath();
    groups_ = cay::isolation::LimitGroups::find(groupName_);
    images_ = std::make_unique<cay::layers::ImageStore>(cay::layers::ImageStore::Options{
        .folder = folder.imagesPath(), .roots = {}, .mode = Mode::kFull});
    Registry::Options options;
    options.images = images_.get();
    options.spawnKeeper = [this](const cay::isolation::Plan& plan, const Fd& listener) {
      return spawn(plan, listener);
    };
    options.releaseSlot = [this](uint32_t slot) { return groups_.release(slot); };
    CAY_ASSIGN(registry_,
               loop_.await(Registry::open(loop_.io(), std::move(folder), std::move(options))));
    return {};
  }

  Result<json::Object> answer(const json::Object& question) {
    if (const json::Value* id = question.if_contains("make")) {
      logBytes_ = question.at("log_bytes").as_int64();
      return make(std::string(id->as_string()));
    }
    if (const json::Value* id = question.if_contains("end")) {
      return end(std::string(id->as_string()));
    }
    return image();
  }

  void end() {
    for (const PooledPtr& pooled : loop_.call([&] { return registry_->list(); })) {
      (void)end(pooled->record.id);
    }
    loop_.await(registry_->shutdown());
    loop_.stop();
    registry_.reset();
    groups_.removeAll();
  }

 private:
  Result<> spawn(const cay::isolation::Plan& plan, const Fd& listener) {
    std::unique_ptr<Nursery>& nursery = nurseries_[logBytes_];
    if (!nursery) {
      const auto half = static_cast<uint64_t>(logBytes_) / 2;
      CAY_ASSIGN(nursery, Nursery::start({.mode = Mode::kFull,
                                          .sandboxes = sandboxes_,
                                          .groupName = groupName_,
                                          .shape = {.headBytes = half, .ringBytes = half}}));
    }
    CAY_ASSIGN(const Fd network, newNetwork());
    return nursery->spawn(plan, listener, network);
  }

  Result<json::Object> make(const std::string& id) {
    Registry::CreateRequest request;
    request.id = id;
    request.spec.network = Network::kGiven;
    request.spec.stays = true;
    request.spec.limits = {.memoryBytes = 1ULL << 30, .pids = 1024};
    CAY_ASSIGN(const auto created, loop_.await(registry_->create(std::move(request))));
    const PooledPtr pooled = created.sandboxes.at(0);
    CAY_TRY(loop_.await(pooled->sandbox.handOver()));
    const int64_t firstUid = registry_->folder().userIds().first(pooled->record.slot);
    return json::Object{{"folder", sandboxes_ + "/" + id}, {"first_uid", firstUid}};
  }

  Result<json::Object> end(const std::string& id) {
    const PooledPtr pooled = loop_.call([&] { return registry_->find(id); });
    if (!pooled) return cay::fail(Code::kNotFound, "there is no sandbox " + id);
    loop_.call([&] { registry_->retire(pooled, cay::sandbox::Death::kKilled); });
    loop_.await(Registry::ended(pooled));
    return json::Object();
  }

  Result<json::Object> image() {
    CAY_ASSIGN(const cay::layers::Image image, images_->resolve(""));
    cay::host::Startup startup;
    startup.pool.emplace().image = image;
    const json::Value document = json::parse(cay::host::startupText(startup)).value();
    return document.at_pointer("/pool/image").as_object();
  }

  std::string groupName_;
  std::string sandboxes_;
  cay::isolation::LimitGroups groups_;
  std::unique_ptr<cay::layers::ImageStore> images_;
  std::map<int64_t, std::unique_ptr<Nursery>> nurseries_;
  int64_t logBytes_ = 0;  // of the one that is being made
  cay::testing::LoopThread loop_;
  std::unique_ptr<Registry> registry_;
};

void say(const json::Object& object) {
  std::cout << json::serialize(object) << std::endl;
}

void complain(const cay::Error& error) {
  say({{"error", error.message}});
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = cay::sandbox::runAsNursery(argc, argv)) return *code;
  if (argc != 2) {
    std::cerr << "usage: hub_sandbox_maker STATE\n";
    return 2;
  }
  Maker maker;
  if (auto opened = maker.open(argv[1]); !opened) {
    complain(opened.error());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto question = json::parse(line);
    const auto answer = question && question->is_object()
                            ? maker.answer(question->get_object())
                            : Result<json::Object>(cay::fail(Code::kInvalid, "not an object"));
    if (answer) {
      say(*answer);
    } else {
      complain(answer.error());
    }
  }
  maker.end();
  return 0;
}
