#include "sandbox/sandbox.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kKillGraceMs = 2'000;     // between TERM and KILL when a client asks for the end
constexpr Millis kShutdownPatience{6'000};  // for the keeper to end everything
constexpr size_t kStartOverhead = 64;       // of a start message around its spec

Writer messageFor(Message kind, const Exec& exec) {
  Writer message;
  message.put(kind).put(std::string_view(exec.id));
  return message;
}

}  // namespace

Sandbox::Sandbox(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)) {}

Sandbox::~Sandbox() {
  if (link_) link_->close();
}

ExecTable& Sandbox::table() {
  if (table_) return *table_;
  table_ = std::make_unique<ExecTable>(io_, options_.folder, options_.shape, options_.retention);
  if (!recovered_) {
    if (options_.hasSpareLog) table_->offer(kSpareLog);
    return *table_;
  }
  table_->load();
  if (!link_) {
    for (const ExecPtr& exec : table_->live()) table_->lose(exec, Cause::kHostLost);
  }
  return *table_;
}

void Sandbox::recover() {
  recovered_ = true;
  if (!options_.keeperIsGiven) {
    if (auto mark = KeeperMark::load(options_.folder.base, options_.folder.keeperMark())) {
      keeper_ = *mark;
      given_ = true;
      return;
    }
  }
  if (auto living = KeeperLink::toLiving(io_, options_.folder, callbacks())) {
    link_ = std::move(*living);
  } else {
    orphans_ = true;
  }
}

net::Task<bool> Sandbox::settled(Millis limit) {
  bool inTime = true;
  while (link_ && !ready_ && inTime) inTime = co_await keeperChanged_.wait(limit);
  co_return inTime;
}

KeeperLink::Callbacks Sandbox::callbacks() {
  return {.onPacket = [this](sys::Packet packet) { onPacket(std::move(packet)); },
          .onLost = [this] { onKeeperLost(); }};
}

net::Task<Result<KeeperMark>> Sandbox::handOver() {
  CAY_CO_TRY(co_await haveKeeper());
  co_await settled();
  if (gone_) co_return std::unexpected(*gone_);
  if (!link_ || !keeper_) {
    co_return fail(Code::kExhausted, refusal_.empty() ? "the keeper is not known" : refusal_);
  }
  if (running() > 0) co_return fail(Code::kConflict, "something runs in it already");
  CAY_CO_TRY(keeper_->save(options_.folder.base, options_.folder.keeperMark()));
  given_ = true;
  link_->close();
  link_.reset();
  keeperChanged_.notifyAll();
  co_return *keeper_;
}

net::Task<> Sandbox::ended() {
  if (!given_ || !keeper_) co_return;
  const KeeperMark last = *keeper_;
  co_await last.ended();
}

void Sandbox::noteWork() {
  if (options_.onFirstWork) std::exchange(options_.onFirstWork, {})();
}

// Completes at once where there is a keeper, so that nothing slips in between a caller's checks and
// its message.
net::Task<Result<>> Sandbox::haveKeeper() {
  if (given_ && !gone_) co_return fail(Code::kConflict, "its keeper was given away");
  while (!gone_ && (!link_ || closing_)) {
    if (link_) {
      co_await keeperChanged_.wait();
    } else if (keeper_) {
      // Two keepers must never work on the same files and groups.
      const KeeperMark last = *keeper_;
      co_await last.ended();
      if (keeper_ == last) keeper_.reset();
    } else if (options_.keeperIsGiven) {
      co_return fail(Code::kGone, "the sandbox is over");
    } else {
      ready_ = false;
      closing_ = false;
      refusal_.clear();
      CAY_CO_ASSIGN(link_,
                    KeeperLink::toNew(io_, options_.folder, options_.spawnKeeper, callbacks()));
      orphans_ = false;
    }
  }
  if (gone_) co_return std::unexpected(*gone_);
  co_return Result<>();
}

Result<ExecPtr> Sandbox::known(const StartRequest& request) {
  ExecPtr exec = request.key.empty() ? nullptr : table().findByKey(request.key);
  if (exec && exec->fingerprint != request.fingerprint) {
    return fail(Code::kUnprocessable,
                "this Idempotency-Key was used for a different request before");
  }
  return exec;
}

ExecPtr Sandbox::admit(StartRequest& request) {
  ExecSpec& spec = request.spec;
  auto exec = std::make_shared<Exec>();
  exec->id = newId(spec.kind == Kind::kExec ? "x" : "p");
  exec->kind = spec.kind;
  exec->startedAtMs = wallMs();
  if (spec.kind == Kind::kProcess) exec->cmd = std::move(request.cmd);
  exec->tag = std::move(request.tag);
  exec->key = std::move(request.key);
  exec->fingerprint = std::move(request.fingerprint);
  spec.id = exec->id;
  spec.meta = metaOf(*exec);
  spec.overwrite = table().add(exec);
  spec.file = exec->file;
  return exec;
}

Result<> Sandbox::announce(Exec& exec, const ExecSpec& spec) {
  exec.announced = true;
  Writer message;
  message.put(Message::kStart);
  putOffsets(message, exec.limitSent);
  message.put(exec.kind == Kind::kExec);
  Writer text;
  putSpec(text, spec);
  if (spec.stdinMode != Stdin::kData &&
      text.bytes().size() + kStartOverhead <= sys::kMaxPacketBytes) {
    link_->send(message.put(uint64_t{0}).bytes() + text.bytes());
    return {};
  }
  auto file = sys::memoryFile("exec", text.bytes() + spec.stdinData);
  if (!file) return std::unexpected(std::move(file.error()).wrap("cannot hand the command over"));
  link_->send(message.put(uint64_t{text.bytes().size()}).bytes(), std::move(*file));
  return {};
}

net::Task<Result<Sandbox::Started>> Sandbox::start(StartRequest request) {
  CAY_CO_ASSIGN(ExecPtr exec, known(request));
  if (!exec) {
    noteWork();
    CAY_CO_TRY(co_await haveKeeper());
    CAY_CO_ASSIGN(exec, known(request));  // it may have come meanwhile
  }
  const bool attached = exec != nullptr;
  if (!attached) exec = admit(request);

  Started started;
  started.exec = exec;
  if (exec->kind == Kind::kExec) {
    started.follower = std::make_unique<Follower>(*this, exec, Offsets{}, /*listening=*/true);
  }
  if (!attached) {
    if (auto told = announce(*exec, request.spec); !told) {
      started.follower.reset();
      table().discard(exec);
      co_return std::unexpected(std::move(told).error());
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

net::Task<bool> Sandbox::kill(ExecPtr exec) {
  if (!exec->live || !link_) co_return false;
  link_->send(messageFor(Message::kEnd, *exec).put(Cause::kKilled).put(kKillGraceMs).bytes());
  while (exec->live) co_await exec->changed.wait();
  co_return true;
}

void Sandbox::endCommands() {
  if (!link_) return;
  for (const ExecPtr& exec : table().live()) {
    link_->send(messageFor(Message::kEnd, *exec).put(Cause::kKilled).put(kKillGraceMs).bytes());
  }
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
  if (link_) link_->send(messageFor(Message::kAskStdin, *exec).bytes());
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

net::Task<Result<Fd>> Sandbox::ask(Message question) {
  noteWork();
  CAY_CO_TRY(co_await haveKeeper());
  const auto asked = std::make_shared<Ask>();
  asked->answer = question == Message::kAskRoot ? Message::kRoot : Message::kSocket;
  asks_.push_back(asked);
  link_->send(Writer().put(question).bytes());
  while (!asked->result) co_await asked->answered.wait();
  co_return *std::move(asked->result);
}

void Sandbox::endKeeper() {
  if (!link_ || closing_) return;
  closing_ = true;
  link_->send(Writer().put(Message::kShutdown).bytes());
}

net::Task<> Sandbox::shutdown() {
  endKeeper();
  const int64_t until = monotonicMs() + kShutdownPatience.count();
  while (link_ && monotonicMs() < until) {
    co_await keeperChanged_.wait(Millis(std::max<int64_t>(1, until - monotonicMs())));
  }
}

net::Task<> Sandbox::destroy(std::string why) {
  gone_ = Error{.code = Code::kGone, .sys = 0, .message = std::move(why)};
  keeperChanged_.notifyAll();
  // One that has just been started says first of all who it is. Whoever cannot (for want of
  // descriptors) is asked to end instead.
  while (link_ && !keeper_) {
    if (ready_) endKeeper();
    co_await keeperChanged_.wait();
  }
  if (keeper_) {
    const KeeperMark last = *keeper_;
    co_await last.kill();
  }
  while (link_) co_await keeperChanged_.wait();  // its last words
  keeper_.reset();
}

uint64_t Sandbox::windowBytes() const {
  constexpr uint64_t kWindowBytes = 1 << 20;
  return std::min(kWindowBytes, options_.shape.ringBytes / 2);
}

void Sandbox::updateWindow(Exec& exec, Tell tell) {
  Offsets limits{{kNoLimit, kNoLimit}};
  for (const Follower* follower : exec.followers) {
    for (int stream = 0; stream < kStreams; ++stream) {
      limits.at[stream] = std::min(limits.at[stream], follower->at().at[stream] + windowBytes());
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
