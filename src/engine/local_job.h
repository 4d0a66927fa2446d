// One job of the local engine, from its acceptance to its end. On the loop's thread.
//
// Its life is a list of steps. One that fails ends the job, with the step's name and the reason,
// and what the steps before it took is given back in reverse. What must be known after a restart is
// in the job's folder before the next step begins.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/job_body.h"
#include "engine/job_folder.h"
#include "engine/job_house.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::engine {

class LocalJob : public std::enable_shared_from_this<LocalJob> {
 public:
  LocalJob(JobHouse& house, JobFolder folder, JobSpec spec, JobState state);

  [[nodiscard]] const std::string& id() const { return spec_.id; }
  [[nodiscard]] const JobSpec& spec() const { return spec_; }
  [[nodiscard]] const JobFolder& folder() const { return folder_; }
  [[nodiscard]] const JobState& state() const { return state_; }
  // What everybody may know.
  [[nodiscard]] const Status& status() const { return told_; }
  // Nothing of it runs any more, and no line is added to its log.
  [[nodiscard]] bool isGone() const { return gone_; }
  [[nodiscard]] bool isStarting() const {
    return begun_ && !gone_ && state_.status.stage == Stage::kScheduling;
  }
  // Where its network is; not valid if it has none.
  [[nodiscard]] const Fd& networkSpace() const { return network_.space; }

  // It is its turn.
  void begin();
  // It was started by an earlier process.
  void resume();
  // Completes when what an earlier process started is ours again, or turned out to be lost.
  net::Task<> takenUp();
  // An earlier process had hardly begun with it: it waits for its turn as before.
  void beginAgain();
  // Ends what an earlier process left of one that is over, or that nobody knows.
  net::Task<> sweep();
  // Why it waits.
  void setMessage(std::string message);
  // See Engine::end.
  net::Task<> end(Stage stage, std::string why);
  void relabel(Pairs labels);

  net::Task<Result<net::Stream>> dial(uint16_t port);
  net::Task<Result<Usage>> usage();
  // To be called every second or so.
  void tick(int64_t nowMs);

 private:
  using Self = std::shared_ptr<LocalJob>;
  struct Step {
    const char* name;
    net::Task<Result<>> (LocalJob::*act)();
  };

  enum class From : uint8_t { kBeginning, kMiddle };
  static net::Task<> run(Self self, From from);
  net::Task<Result<>> take(const std::vector<Step>& steps);
  net::Task<Result<>> live();
  net::Task<> putDown();
  void giveNetworkBack();
  void leave();

  net::Task<Result<>> haveImage();
  net::Task<Result<>> haveVolumes();
  net::Task<Result<>> haveGpus();
  net::Task<Result<>> findGpus();
  net::Task<Result<>> haveNetwork();
  net::Task<Result<>> findNetwork();
  net::Task<Result<>> haveFolder();
  net::Task<Result<>> findFolder();
  net::Task<Result<>> startBody();
  net::Task<Result<>> findBody();
  Result<> writeEtc();
  // Of a pool.
  Result<> haveIds();
  Result<> findIds();
  void giveIdsBack();
  void giveGpusBack();
  void trimHostLog() const;

  // It is over, as files say from now on; others are told later. Only the first one counts.
  void conclude(Stage stage, std::string message);
  void save();
  void tell();
  void noteRunning();

  JobHouse& house_;
  JobFolder folder_;
  JobSpec spec_;
  JobState state_;
  Status told_;
  bool begun_ = false;
  bool taken_ = false;  // all steps of its beginning
  bool concluded_ = false;
  bool gone_ = false;
  net::Event changed_;
  std::shared_ptr<ImagePulls::Pull> pull_;
  std::vector<isolation::Bind> binds_;
  std::vector<std::string> devices_;
  JobNetwork network_;
  JobGround ground_;
  std::unique_ptr<JobBody> body_;
};

}  // namespace cay::engine
