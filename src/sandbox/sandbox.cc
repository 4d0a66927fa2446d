#include "sandbox/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/wire.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kKillGraceMs = 2'000;     // between TERM and KILL when a client asks for the end
constexpr Millis kShutdownPatience{6'000};  // for the keeper to end everything
constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kRecycledBytes = 16 * kBlockBytes;
constexpr Millis kRetentionDelay{2};
constexpr size_t kStartOverhead = 64;  // of a start message around its spec

std::string_view prefixOf(Kind kind) {
  return kind == Kind::kExec ? "x" : "p";
}

std::string metaOf(const Exec& exec) {
  json::Object meta;
  meta["id"] = exec.id;
  meta["started_at_ms"] = exec.startedAtMs;
  meta["tag"] = exec.tag;
  meta["key"] = exec.key;
  meta["fingerprint"] = exec.fingerprint;
  meta["cmd"] = exec.cmd;
  return json::serialize(meta);
}

void readMeta(std::string_view text, Exec& exec) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return;
  const json::Object& meta = parsed->get_object();
  const auto string = [&](const char* name) {
    const json::Value* value = meta.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
  };
  if (const json::Value* at = meta.if_contains("started_at_ms"); at != nullptr && at->is_int64()) {
    exec.startedAtMs = at->get_int64();
  }
  exec.id = string("id");
  exec.tag = string("tag");
  exec.key = string("key");
  exec.fingerprint = string("fingerprint");
  exec.cmd = string("cmd");
}

uint64_t diskBytes(const Exec& exec, const LogShape& shape) {
  uint64_t bytes = kBlockBytes;
  for (const uint64_t total : exec.totals.at) {
    const uint64_t kept = std::min(total, shape.headBytes + shape.ringBytes);
    bytes += (kept + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  return bytes;
}

Writer messageFor(Message kind, const Exec& exec) {
  Writer message;
  message.put(kind).put(std::string_view(exec.id));
  return message;
}

}  // namespace

Sandbox::Sandbox(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)), retentionTimer_(io.get_executor()) {}

Sandbox::~Sandbox() {
  if (link_) link_->close();
}

net::Task<Result<std::unique_ptr<Sandbox>>> Sandbox::open(boost::asio::io_context& io,
                                                          Options options) {
  std::unique_ptr<Sandbox> sandbox(new Sandbox(io, std::move(options)));
  sandbox->loadRecords();
  auto living =
      KeeperLink::toLiving(io, sandbox->options_.state.folder.get(), sandbox->callbacks());
  if (living) {
    sandbox->link_ = std::move(*living);
  } else {
    for (const auto& [id, exec] : std::unordered_map(sandbox->execs_)) {
      if (exec->live) sandbox->markLost(exec);
    }
    CAY_CO_TRY(sandbox->ensureKeeper());
  }
  while (sandbox->link_ && !sandbox->ready_) co_await sandbox->keeperChanged_.wait();
  co_return sandbox;
}

KeeperLink::Callbacks Sandbox::callbacks() {
  return {.onPacket = [this](const sys::Packet& packet) { onPacket(packet); },
          .onLost = [this] { onKeeperLost(); }};
}

Result<> Sandbox::ensureKeeper() {
  if (link_) return {};
  ready_ = false;
  CAY_ASSIGN(link_, KeeperLink::toNew(io_, options_.state.folder.get(), options_.spawnKeeper,
                                      callbacks()));
  return {};
}

ExecPtr Sandbox::loadRecord(const std::string& file) {
  const auto log = LogReader::open(options_.state.execs.get(), file);
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

void Sandbox::loadRecords() {
  const std::string folder = "/proc/self/fd/" + std::to_string(options_.state.execs.get());
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(folder.c_str()), ::closedir);
  if (!listing) return;
  std::vector<ExecPtr> ended;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string file = entry->d_name;
    if (!isId("x", file) && !isId("p", file)) continue;
    const ExecPtr exec = loadRecord(file);
    if (!exec) {
      (void)::unlinkat(options_.state.execs.get(), file.c_str(),
                       0);  // half made when its keeper died
      continue;
    }
    execs_[exec->id] = exec;
    if (!exec->key.empty()) byKey_[exec->key] = exec;
    if (exec->exit) ended.push_back(exec);
  }
  std::ranges::sort(ended, {}, [](const ExecPtr& exec) { return exec->startedAtMs; });
  // Those with a record may still have something running; the keeper will say so.
  for (const ExecPtr& exec : ended) settleGone(exec);
}

net::Task<Result<Sandbox::Started>> Sandbox::start(StartRequest request) {
  ExecPtr exec;
  bool attached = false;
  if (const auto known = byKey_.find(request.key); !request.key.empty() && known != byKey_.end()) {
    exec = known->second;
    attached = true;
    if (exec->fingerprint != request.fingerprint) {
      co_return fail(Code::kUnprocessable,
                     "this Idempotency-Key was used for a different request before");
    }
  } else {
    CAY_CO_TRY(ensureKeeper());
    exec = std::make_shared<Exec>();
    ExecSpec& spec = request.spec;
    exec->id = newId(prefixOf(spec.kind));
    exec->kind = spec.kind;
    exec->startedAtMs = wallMs();
    if (spec.kind == Kind::kProcess) exec->cmd = std::move(request.cmd);
    exec->tag = std::move(request.tag);
    exec->key = std::move(request.key);
    exec->fingerprint = std::move(request.fingerprint);
    spec.id = exec->id;
    spec.meta = metaOf(*exec);
    exec->file = takeRecyclable(spec.kind);
    spec.overwrite = !exec->file.empty();
    if (exec->file.empty()) exec->file = exec->id;
    spec.file = exec->file;
    execs_[exec->id] = exec;
    if (!exec->key.empty()) byKey_[exec->key] = exec;
  }

  Started started;
  started.exec = exec;
  if (exec->kind == Kind::kExec) {
    started.follower = std::make_unique<Follower>(*this, exec, Offsets{}, /*listening=*/true);
  }
  if (!exec->announced) {
    exec->announced = true;
    Writer message;
    message.put(Message::kStart);
    putOffsets(message, exec->limitSent);
    message.put(exec->kind == Kind::kExec);
    Writer spec;
    putSpec(spec, request.spec);
    const std::string& input = request.spec.stdinData;
    if (request.spec.stdinMode != Stdin::kData &&
        spec.bytes().size() + kStartOverhead <= sys::kMaxPacketBytes) {
      link_->send(message.put(uint64_t{0}).bytes() + spec.bytes());
    } else {
      auto file = sys::memoryFile("exec", spec.bytes() + input);
      if (!file) {
        started.follower.reset();
        discard(exec);
        co_return std::unexpected(std::move(file.error()).wrap("cannot hand the command over"));
      }
      link_->send(message.put(uint64_t{spec.bytes().size()}).bytes(), std::move(*file));
    }
  }
  while (exec->pid == 0 && !exec->failure && !exec->exit) co_await exec->changed.wait();
  if (attached && started.follower) co_await started.follower->sync();

  const bool bad = exec->failure &&
                   (exec->kind == Kind::kProcess || exec->failure->fault != StartFault::kCommand);
  if (bad) {
    started.follower.reset();
    const Code code =
        exec->failure->fault == StartFault::kShortage ? Code::kExhausted : Code::kInvalid;
    co_return fail(code, exec->failure->message);
  }
  co_return started;
}

ExecPtr Sandbox::find(std::string_view id) const {
  const auto found = execs_.find(std::string(id));
  return found == execs_.end() ? nullptr : found->second;
}

ExecPtr Sandbox::findProcess(std::string_view idOrPid) const {
  if (isId("p", idOrPid)) return find(idOrPid);
  const auto pid = parseUint(idOrPid);
  if (!pid) return nullptr;
  ExecPtr best;
  for (const ExecPtr& exec : processes()) {
    if (exec->pid == static_cast<int64_t>(*pid)) best = exec;  // the newest of that number
  }
  return best;
}

std::vector<ExecPtr> Sandbox::processes() const {
  std::vector<ExecPtr> out;
  for (const auto& [id, exec] : execs_) {
    if (exec->kind == Kind::kProcess && (exec->pid != 0 || exec->exit)) out.push_back(exec);
  }
  std::ranges::sort(out, {},
                    [](const ExecPtr& exec) { return std::pair(exec->startedAtMs, exec->id); });
  return out;
}

size_t Sandbox::running() const {
  return static_cast<size_t>(
      std::ranges::count_if(execs_, [](const auto& entry) { return entry.second->live; }));
}

net::Task<bool> Sandbox::kill(ExecPtr exec) {
  if (!exec->live || !link_) co_return false;
  link_->send(messageFor(Message::kEnd, *exec).put(Cause::kKilled).put(kKillGraceMs).bytes());
  while (exec->live) co_await exec->changed.wait();
  co_return true;
}

void Sandbox::signal(const Exec& exec, int number) {
  if (exec.live && link_) link_->send(messageFor(Message::kSignal, exec).put(number).bytes());
}

net::Task<Result<Fd>> Sandbox::openStdin(ExecPtr exec) {
  const auto closed = [] { return fail(Code::kConflict, "its standard input is closed"); };
  if (!exec->live || !link_) co_return closed();
  // One question at a time for each exec: answers carry its id alone.
  while (stdinAnswers_.contains(exec->id)) co_await stdinEvent_.wait();
  stdinAnswers_[exec->id] = std::nullopt;
  link_->send(messageFor(Message::kAskStdin, *exec).bytes());
  while (exec->live && !stdinAnswers_[exec->id]) co_await stdinEvent_.wait();
  auto answer = std::move(stdinAnswers_[exec->id]);
  stdinAnswers_.erase(exec->id);
  stdinEvent_.notifyAll();
  if (!answer || !answer->valid()) co_return closed();
  co_return std::move(*answer);
}

void Sandbox::closeStdin(const Exec& exec) {
  if (exec.live && link_) link_->send(messageFor(Message::kCloseStdin, exec).bytes());
}

net::Task<> Sandbox::shutdown() {
  if (!link_) co_return;
  Writer message;
  link_->send(message.put(Message::kShutdown).bytes());
  const int64_t until = monotonicMs() + kShutdownPatience.count();
  while (link_ && monotonicMs() < until) {
    co_await keeperChanged_.wait(Millis(std::max<int64_t>(1, until - monotonicMs())));
  }
}

void Sandbox::onPacket(const sys::Packet& packet) {
  Reader in(packet.data);
  const auto kind = in.get<Message>();
  if (kind == Message::kHello) {
    const auto protocol = in.get<uint32_t>();
    mechanism_ = in.text();
    whyNoCgroups_ = in.text();
    if (protocol != kKeeperProtocol) {
      log(Level::kWarn, "the running keeper is of another version",
          {{"protocol", int64_t{protocol}}});
    }
    return;
  }
  if (kind == Message::kReady) {
    ready_ = true;
    for (const auto& [id, exec] : std::unordered_map(execs_)) {
      if (exec->live && exec->recovered) markLost(exec);
    }
    keeperChanged_.notifyAll();
    return;
  }
  const std::string_view id = in.text();
  const ExecPtr exec = find(id);
  if (kind == Message::kStdin) {
    const bool open = in.get<bool>();
    if (const auto asked = stdinAnswers_.find(std::string(id)); asked != stdinAnswers_.end()) {
      asked->second = open ? Fd(::fcntl(packet.fd.get(), F_DUPFD_CLOEXEC, 3)) : Fd();
    }
    stdinEvent_.notifyAll();
    return;
  }
  if (!exec) return;
  switch (kind) {
    case Message::kLive:
      exec->recovered = false;
      if (!exec->live) {  // its command has ended, but something that it left behind has not
        exec->live = true;
        finishedBytes_ -= std::min(finishedBytes_, diskBytes(*exec, options_.shape));
        std::erase(finished_[static_cast<size_t>(exec->kind)], exec);
      }
      exec->pid = in.get<int32_t>();
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      break;
    case Message::kStarted:
      exec->pid = in.get<int32_t>();
      break;
    case Message::kStartFailed: {
      StartFailure failure;
      failure.fault = in.get<StartFault>();
      failure.exitCode = in.get<int32_t>();
      failure.message = in.text();
      exec->failure = failure;
      exec->live = false;
      if (failure.fault == StartFault::kCommand && exec->kind == Kind::kExec) {
        ExitRecord record;
        record.cause = Cause::kStartFailed;
        record.exitCode = failure.exitCode;
        record.error = failure.message;
        record.outputBytes[kStderr] = failure.message.size() + 1;
        exec->totals.at[kStderr] = record.outputBytes[kStderr];
        exec->exit = std::move(record);
        settleGone(exec);
      } else {
        discard(exec);
      }
      break;
    }
    case Message::kProgress:
      exec->pid = in.get<int32_t>();
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      ++exec->progressCount;
      break;
    case Message::kExit:
      exec->exit = getExit(in);
      exec->pid = exec->exit->pid;
      exec->lostFrom = getOffsets(in);
      for (int stream = 0; stream < kStreams; ++stream) {
        exec->totals.at[stream] =
            std::max(exec->totals.at[stream], exec->exit->outputBytes[stream]);
      }
      ++exec->progressCount;
      if (in.get<bool>()) settleGone(exec);
      break;
    case Message::kGone:
      exec->totals = getOffsets(in);
      exec->lostFrom = getOffsets(in);
      settleGone(exec);
      break;
    default:
      return;
  }
  exec->changed.notifyAll();
}

void Sandbox::onKeeperLost() {
  link_.reset();
  ready_ = true;
  size_t lost = 0;
  for (const auto& [id, exec] : std::unordered_map(execs_)) {
    if (!exec->live) continue;
    markLost(exec);
    ++lost;
  }
  if (lost > 0) log(Level::kError, "the keeper died", {{"execs_lost", static_cast<int64_t>(lost)}});
  stdinEvent_.notifyAll();
  keeperChanged_.notifyAll();
}

void Sandbox::markLost(const ExecPtr& exec) {
  if (!exec->exit) {
    ExitRecord record;
    record.cause = Cause::kHostLost;
    record.pid = exec->pid;
    record.durationMs = std::max<int64_t>(0, wallMs() - exec->startedAtMs);
    if (const auto log = openLog(*exec)) {
      if (const auto counters = log->counters()) {
        exec->totals = counters->totals;
        exec->lostFrom = counters->lostFrom;
      }
    }
    std::ranges::copy(exec->totals.at, record.outputBytes);
    (void)writeLostExit(options_.state.execs.get(), exec->file, record);
    exec->exit = std::move(record);
  }
  settleGone(exec);
  exec->changed.notifyAll();
}

// Nothing more can come of it: it joins the ended ones.
void Sandbox::settleGone(const ExecPtr& exec) {
  exec->live = false;
  finished_[static_cast<size_t>(exec->kind)].push_back(exec);
  finishedBytes_ += diskBytes(*exec, options_.shape);
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

void Sandbox::forget(const ExecPtr& exec) {
  execs_.erase(exec->id);
  if (const auto found = byKey_.find(exec->key); found != byKey_.end() && found->second == exec) {
    byKey_.erase(found);
  }
}

void Sandbox::discard(const ExecPtr& exec) {
  forget(exec);
  (void)::unlinkat(options_.state.execs.get(), exec->file.c_str(), 0);
}

// The oldest ended one that nobody reads, out of the list.
ExecPtr Sandbox::takeOldest(Kind kind) {
  auto& list = finished_[static_cast<size_t>(kind)];
  const auto oldest =
      std::ranges::find_if(list, [](const ExecPtr& exec) { return exec->followers.empty(); });
  if (oldest == list.end()) return nullptr;
  ExecPtr exec = *oldest;
  list.erase(oldest);
  finishedBytes_ -= std::min(finishedBytes_, diskBytes(*exec, options_.shape));
  return exec;
}

size_t Sandbox::keptRecords(Kind kind) const {
  return kind == Kind::kExec ? options_.finishedExecs : options_.finishedProcesses;
}

// With all places for ended ones taken, a new exec takes over the file of the oldest.
std::string Sandbox::takeRecyclable(Kind kind) {
  if (finished_[static_cast<size_t>(kind)].size() < keptRecords(kind)) return {};
  const ExecPtr oldest = takeOldest(kind);
  if (!oldest) return {};
  if (diskBytes(*oldest, options_.shape) > kRecycledBytes) {  // the blocks it has would stay taken
    discard(oldest);
    return {};
  }
  forget(oldest);
  return oldest->file;
}

void Sandbox::enforceRetention() {
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
  while (finishedBytes_ > options_.totalLogBytes) {
    const bool processIsOlder =
        execs.empty() ||
        (!processes.empty() && processes.front()->startedAtMs < execs.front()->startedAtMs);
    const Kind older = processIsOlder ? Kind::kProcess : Kind::kExec;
    const Kind younger = processIsOlder ? Kind::kExec : Kind::kProcess;
    if (!discardOldest(older) && !discardOldest(younger)) break;
  }
}

Result<LogReader> Sandbox::openLog(const Exec& exec) const {
  return LogReader::open(options_.state.execs.get(), exec.file);
}

uint64_t Sandbox::windowBytes() const {
  constexpr uint64_t kWindowBytes = 1 << 20;
  return std::min(kWindowBytes, options_.shape.ringBytes / 2);
}

void Sandbox::updateWindow(Exec& exec, Tell tell) {
  Offsets limits{{kNoLimit, kNoLimit}};
  for (const Follower* follower : exec.followers) {
    for (int stream = 0; stream < kStreams; ++stream) {
      limits.at[stream] = std::min(limits.at[stream], follower->at_.at[stream] + windowBytes());
    }
  }
  if (!exec.announced) {
    exec.limitSent = limits;
    return;
  }
  if (!exec.live || !link_) return;
  bool moved = tell == Tell::kAlways;
  for (int stream = 0; stream < kStreams; ++stream) {
    moved |= limits.at[stream] < exec.limitSent.at[stream] ||
             limits.at[stream] - exec.limitSent.at[stream] >= windowBytes() / 2;
  }
  if (!moved) return;
  exec.limitSent = limits;
  Writer message = messageFor(Message::kWindow, exec);
  putOffsets(message, limits);
  link_->send(message.bytes());
}

void Sandbox::changeListeners(Exec& exec, int by) {
  const bool before = exec.listeners > 0;
  exec.listeners += by;
  const bool after = exec.listeners > 0;
  if (before == after || !exec.announced || !exec.live || !link_) return;
  link_->send(messageFor(Message::kAttended, exec).put(after).bytes());
}

}  // namespace cay::sandbox
