#include "sandbox/exec_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "sys/file.h"

namespace cay::sandbox {
namespace {

constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kRecycledBytes = 16 * kBlockBytes;
constexpr Millis kRetentionDelay{2};

}  // namespace

ExecTable::ExecTable(boost::asio::io_context& io, const SandboxFolder& folder, LogShape shape,
                     Retention retention)
    : folder_(folder), shape_(shape), retention_(retention), retentionTimer_(io.get_executor()) {}

ExecPtr ExecTable::loadRecord(const std::string& file) const {
  const auto log = LogReader::open(folder_.base, folder_.log(file));
  if (!log) return nullptr;
  const auto meta = log->meta();
  const auto counters = log->counters();
  auto exit = log->exit();
  if (!meta || !counters || !exit) return nullptr;
  auto exec = std::make_shared<Exec>();
  readMeta(*meta, *exec);
  if (!isId("x", exec->id) && !isId("p", exec->id)) return nullptr;
  exec->file = file;
  exec->kind = isId("p", exec->id) ? Kind::kProcess : Kind::kExec;
  exec->announced = true;
  exec->recovered = true;
  exec->totals = counters->totals;
  exec->lostFrom = counters->lostFrom;
  exec->exit = std::move(*exit);
  if (exec->exit) exec->pid = exec->exit->pid;
  return exec;
}

void ExecTable::load() {
  const auto folder =
      sys::openAt(folder_.base, folder_.execs().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return;  // nothing has run here yet
  const auto entries = sys::readDirectory(folder->get());
  if (!entries) return;
  std::vector<ExecPtr> ended;
  for (const sys::DirEntry& entry : *entries) {
    if (!isId("x", entry.name) && !isId("p", entry.name)) continue;
    const ExecPtr exec = loadRecord(entry.name);
    if (!exec) {
      unlinkLog(entry.name);  // half made when its keeper died
      continue;
    }
    execs_[exec->id] = exec;
    ++liveCount_;
    if (!exec->key.empty()) byKey_[exec->key] = exec;
    if (exec->exit) ended.push_back(exec);
  }
  std::ranges::sort(ended, {}, [](const ExecPtr& exec) { return exec->startedAtMs; });
  // Those with a record may still have something running; the keeper will say so.
  for (const ExecPtr& exec : ended) end(exec);
}

ExecPtr ExecTable::find(std::string_view id) const {
  const auto found = execs_.find(std::string(id));
  return found == execs_.end() ? nullptr : found->second;
}

ExecPtr ExecTable::findByKey(const std::string& key) const {
  const auto found = byKey_.find(key);
  return found == byKey_.end() ? nullptr : found->second;
}

ExecPtr ExecTable::findProcess(std::string_view idOrPid) const {
  if (isId("p", idOrPid)) return find(idOrPid);
  const auto pid = parseUint(idOrPid);
  if (!pid) return nullptr;
  ExecPtr best;
  for (const ExecPtr& exec : processes()) {
    if (exec->pid == static_cast<int64_t>(*pid)) best = exec;  // the newest of that number
  }
  return best;
}

std::vector<ExecPtr> ExecTable::processes() const {
  std::vector<ExecPtr> out;
  for (const auto& [id, exec] : execs_) {
    if (exec->kind == Kind::kProcess && (exec->pid != 0 || exec->exit)) out.push_back(exec);
  }
  std::ranges::sort(out, {},
                    [](const ExecPtr& exec) { return std::pair(exec->startedAtMs, exec->id); });
  return out;
}

std::vector<ExecPtr> ExecTable::live() const {
  std::vector<ExecPtr> out;
  for (const auto& [id, exec] : execs_) {
    if (exec->live) out.push_back(exec);
  }
  return out;
}

void ExecTable::setLive(Exec& exec, bool live) {
  if (exec.live == live) return;
  exec.live = live;
  liveCount_ += live ? 1 : static_cast<size_t>(-1);
}

bool ExecTable::add(const ExecPtr& exec) {
  exec->file = offered_.empty() ? takeRecyclable(exec->kind) : std::exchange(offered_, {});
  const bool recycled = !exec->file.empty();
  if (!recycled) exec->file = exec->id;
  execs_[exec->id] = exec;
  ++liveCount_;
  if (!exec->key.empty()) byKey_[exec->key] = exec;
  return recycled;
}

void ExecTable::end(const ExecPtr& exec) {
  if (!exec->live) return;
  setLive(*exec, false);
  finished_[static_cast<size_t>(exec->kind)].push_back(exec);
  finishedBytes_ += diskBytes(*exec);
  if (retentionDue_) return;
  retentionDue_ = true;
  // A moment later, so that no client waits for the removal of old records.
  retentionTimer_.expires_after(kRetentionDelay);
  retentionTimer_.async_wait(
      [this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
        // A timer that has expired calls without an error, even if we are gone by then.
        if (error || alive.expired()) return;
        retentionDue_ = false;
        enforceRetention();
      });
}

void ExecTable::revive(const ExecPtr& exec) {
  if (exec->live) return;
  setLive(*exec, true);
  finishedBytes_ -= std::min(finishedBytes_, diskBytes(*exec));
  std::erase(finished_[static_cast<size_t>(exec->kind)], exec);
}

void ExecTable::lose(const ExecPtr& exec, Cause cause) {
  if (!exec->exit) {
    ExitRecord record;
    record.cause = cause;
    record.pid = exec->pid;
    record.durationMs = std::max<int64_t>(0, wallMs() - exec->startedAtMs);
    if (const auto log = openLog(*exec)) {
      if (const auto counters = log->counters()) {
        exec->totals = counters->totals;
        exec->lostFrom = counters->lostFrom;
      }
    }
    std::ranges::copy(exec->totals.at, record.outputBytes);
    (void)writeLostExit(folder_.base, folder_.log(exec->file), record);
    exec->exit = std::move(record);
  }
  end(exec);
  exec->changed.notifyAll();
}

void ExecTable::forget(const ExecPtr& exec) {
  setLive(*exec, false);
  execs_.erase(exec->id);
  if (const auto found = byKey_.find(exec->key); found != byKey_.end() && found->second == exec) {
    byKey_.erase(found);
  }
}

void ExecTable::discard(const ExecPtr& exec) {
  forget(exec);
  unlinkLog(exec->file);
}

void ExecTable::unlinkLog(const std::string& file) const {
  (void)::unlinkat(folder_.base, folder_.log(file).c_str(), 0);
}

// The oldest ended one that nobody reads, out of the list.
ExecPtr ExecTable::takeOldest(Kind kind) {
  auto& list = finished_[static_cast<size_t>(kind)];
  const auto oldest =
      std::ranges::find_if(list, [](const ExecPtr& exec) { return exec->followers.empty(); });
  if (oldest == list.end()) return nullptr;
  ExecPtr exec = *oldest;
  list.erase(oldest);
  finishedBytes_ -= std::min(finishedBytes_, diskBytes(*exec));
  return exec;
}

size_t ExecTable::keptRecords(Kind kind) const {
  return kind == Kind::kExec ? retention_.execs : retention_.processes;
}

uint64_t ExecTable::diskBytes(const Exec& exec) const {
  uint64_t bytes = kBlockBytes;
  for (const uint64_t total : exec.totals.at) {
    const uint64_t kept = std::min(total, shape_.headBytes + shape_.ringBytes);
    bytes += (kept + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  return bytes;
}

// With all places for ended ones taken, a new exec takes over the file of the oldest.
std::string ExecTable::takeRecyclable(Kind kind) {
  if (finished_[static_cast<size_t>(kind)].size() < keptRecords(kind)) return {};
  const ExecPtr oldest = takeOldest(kind);
  if (!oldest) return {};
  if (diskBytes(*oldest) > kRecycledBytes) {  // the blocks it has would stay taken
    discard(oldest);
    return {};
  }
  forget(oldest);
  return oldest->file;
}

void ExecTable::enforceRetention() {
  const auto discardOldest = [&](Kind kind) {
    const ExecPtr oldest = takeOldest(kind);
    if (oldest) discard(oldest);
    return oldest != nullptr;
  };
  const auto& execs = finished_[static_cast<size_t>(Kind::kExec)];
  const auto& processes = finished_[static_cast<size_t>(Kind::kProcess)];
  for (const Kind kind : {Kind::kExec, Kind::kProcess}) {
    while (finished_[static_cast<size_t>(kind)].size() > keptRecords(kind) && discardOldest(kind)) {
    }
  }
  while (finishedBytes_ > retention_.logBytes) {
    const bool processIsOlder =
        execs.empty() ||
        (!processes.empty() && processes.front()->startedAtMs < execs.front()->startedAtMs);
    const Kind older = processIsOlder ? Kind::kProcess : Kind::kExec;
    const Kind younger = processIsOlder ? Kind::kExec : Kind::kProcess;
    if (!discardOldest(older) && !discardOldest(younger)) break;
  }
}

Result<LogReader> ExecTable::openLog(const Exec& exec) const {
  return LogReader::open(folder_.base, folder_.log(exec.file));
}

}  // namespace cay::sandbox
