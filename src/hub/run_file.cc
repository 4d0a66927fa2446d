#include "hub/run_file.h"

#include <unistd.h>

#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "files/temp_file.h"
#include "sys/boot.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/process.h"

namespace cay::hub {
namespace {

constexpr char kFile[] = "run.json";
constexpr char kLock[] = "/lock";

std::string holderOf(const Paths& paths) {
  const auto text = sys::readFileAt(AT_FDCWD, (paths.state + kLock).c_str());
  const auto pid = text && !words(*text).empty() ? parseUint(words(*text).front()) : std::nullopt;
  return pid ? "process " + std::to_string(*pid) : "another process";
}

template <typename T>
std::optional<T> numberIn(const json::Object& object, std::string_view name) {
  const json::Value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  boost::system::error_code error;
  const T number = value->to_number<T>(error);
  if (error) return std::nullopt;
  return number;
}

std::optional<std::string> textIn(const json::Object& object, std::string_view name) {
  const json::Value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

std::optional<LastRun> parseRun(const json::Object& object) {
  auto api = textIn(object, "api");
  auto domain = textIn(object, "domain");
  const auto boot = textIn(object, "boot");
  const auto tlsPort = numberIn<uint16_t>(object, "tls_port");
  const auto pid = numberIn<pid_t>(object, "pid");
  const auto born = numberIn<uint64_t>(object, "born");
  const json::Value* const own = object.if_contains("own_certificate");
  if (!api || !domain || !boot || !tlsPort || !pid || *pid <= 0 || !born || own == nullptr ||
      !own->is_bool()) {
    return std::nullopt;
  }
  // When a process was born is counted from the start of the machine.
  const auto started = sys::processStart(*pid);
  const auto bootNow = sys::bootId();
  return LastRun{.info = {.api = *std::move(api),
                          .tlsPort = *tlsPort,
                          .domain = *std::move(domain),
                          .ownCertificate = own->get_bool()},
                 .pid = *pid,
                 .runs = started && *started == *born && bootNow && *boot == *bootNow};
}

}  // namespace

Result<RunFile> RunFile::claim(const Paths& paths) {
  auto locked = sandbox::LockedFolder::open(paths.state, 0700);
  if (!locked && locked.error().code == Code::kConflict &&
      sys::statAt(AT_FDCWD, paths.state.c_str(), 0).value_or(sys::Stat{}).st_uid == ::geteuid()) {
    return fail(Code::kConflict, "the state folder " + quoted(paths.state) +
                                     " has a hub already (" + holderOf(paths) +
                                     "): stop that one, or give this one its own (--state)");
  }
  if (!locked) return std::unexpected(std::move(locked).error());
  CAY_TRY(sys::truncateFd(locked->lock.get(), 0));
  CAY_TRY(sys::pwriteAll(locked->lock.get(), std::to_string(::getpid()) + "\n", 0));
  return RunFile(*std::move(locked));
}

Result<> RunFile::write(const RunInfo& info) const {
  CAY_ASSIGN(const uint64_t born, sys::processStart(::getpid()));
  CAY_ASSIGN(const std::string boot, sys::bootId());
  const std::string text = json::serialize(json::Object{{"api", info.api},
                                                        {"tls_port", info.tlsPort},
                                                        {"domain", info.domain},
                                                        {"own_certificate", info.ownCertificate},
                                                        {"pid", ::getpid()},
                                                        {"born", born},
                                                        {"boot", boot}});
  CAY_ASSIGN(files::TempFile file, files::TempFile::create(state_.folder.get(), 0600));
  CAY_TRY(sys::writeAll(file.fd(), text + "\n"));
  return file.publish(kFile);
}

std::optional<LastRun> readRunFile(const Paths& paths) {
  const auto text = sys::readFileAt(AT_FDCWD, (paths.state + "/" + kFile).c_str());
  if (!text) return std::nullopt;
  const auto value = json::parse(*text);
  if (!value || !value->is_object()) return std::nullopt;
  return parseRun(value->get_object());
}

}  // namespace cay::hub
