// For tests: a local engine in a process of its own, which can be killed.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/job_folder.h"
#include "engine/local_engine.h"
#include "engine/local_engine_fixture.h"
#include "sys/io.h"

namespace cay::engine {

inline constexpr char kEngineProcess[] = "--engine-process";

class Deaf final : public Watcher {
 public:
  void changed(const std::string& /*id*/, const Status& /*status*/) override {}
};

inline net::Task<> giveJobs(LocalEngine& engine, Watcher& watcher, std::string folder) {
  if (!co_await engine.open({}, watcher)) std::_Exit(1);
  (void)!::write(STDOUT_FILENO, "o", 1);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  std::ranges::sort(files);
  for (const auto& file : files) {
    const auto text = sys::readFile(file.c_str());
    if (!text || !co_await engine.submit(parseSpec(*text).value())) std::_Exit(1);
    (void)!::write(STDOUT_FILENO, "j", 1);
  }
}

// Arguments: the word above, the state folder, the leases, and a folder of jobs to be given to it.
inline int runEngineProcess(const std::vector<std::string>& arguments) {
  boost::asio::io_context io(1);
  const auto work = boost::asio::make_work_guard(io);
  Deaf watcher;
  LocalEngine engine(io, testOptions(arguments.at(2), arguments.at(3)));
  boost::asio::co_spawn(io, giveJobs(engine, watcher, arguments.at(4)), boost::asio::detached);
  io.run();
  return 0;
}

}  // namespace cay::engine
