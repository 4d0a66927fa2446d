// How long one client waits: for a sandbox, for its first command, for later ones and for its end.
// All take turns with a bare posix_spawn, so that a machine that slows down slows all of them.
#include <stdexcept>

#include "measure.h"
#include "pool_client.h"
#include "pool_host.h"
#include "samples.h"
#include "spawn.h"

namespace cay::bench {
namespace {

// What the walls look like from inside: one program shows it in the very command that is timed.
constexpr char kShowWalls[] =
    R"({"cmd":["/bin/cat","/proc/self/status","/proc/self/uid_map","/proc/self/mountinfo"]})";
const Command kShowWallsBare = {"/bin/cat", "/proc/self/status", "/proc/self/uid_map",
                                "/proc/self/mountinfo"};

void expectIn(const std::string& shown, std::string_view part) {
  if (!shown.contains(part)) {
    throw std::runtime_error("a wall is missing, \"" + std::string(part) + "\", in:\n" + shown);
  }
}

void expectWalls(const std::string& shown, std::string_view walls) {
  expectIn(shown, "\nNoNewPrivs:\t1\n");
  expectIn(shown, "\nSeccomp:\t2\n");
  if (walls == "restricted") {
    expectIn(shown, "\nCapEff:\t0000000000000000\n");
    if (shown.contains("\nUid:\t0\t")) throw std::runtime_error("no user id of its own");
    return;
  }
  expectIn(shown, " 65536\n");  // its own user ids
  expectIn(shown, "\nPid:\t");  // a fresh /proc
  expectIn(shown, " - overlay ");
  if (shown.contains("\nNSpid:\t1\n")) throw std::runtime_error("the command is the keeper");
}

struct Times {
  Samples create;
  Samples first;       // create and its first command, together
  Samples firstShown;  // the same with a command that shows the walls
  Samples firstNoNet;  // the same as `first` with a network of its own
  Samples later;
  Samples remove;
  Samples removeKept;  // with a keeper
};

class Rounds {
 public:
  Rounds(PoolHost& host, std::string_view walls)
      : host_(host), client_(host), walls_(walls), used_(client_.create()) {
    client_.exec(used_);
  }

  void bare(int count) {
    for (int i = 0; i < count; ++i) spawn_.time([] { spawnAndWait({"/bin/true"}); });
    for (int i = 0; i < count; ++i) spawnShown_.time([] { (void)spawnAndRead(kShowWallsBare); });
  }

  void later(int count) {
    for (int i = 0; i < count; ++i) times_.later.time([&] { client_.exec(used_); });
  }

  void create(int count) {
    std::vector<Box> made(count);
    for (Box& box : made) times_.create.time([&] { box = client_.create(); });
    for (const Box& box : made) times_.remove.time([&] { client_.remove(box); });
    host_.settle();
  }

  void first(int count, Samples Times::* samples, std::string_view options = "{}") {
    std::vector<Box> made(count);
    for (Box& box : made) {
      (times_.*samples).time([&] {
        box = client_.create(options);
        client_.exec(box);
      });
    }
    removeKept(made);
  }

  void firstShown(int count) {
    std::vector<Box> made(count);
    for (Box& box : made) {
      std::string shown;
      times_.firstShown.time([&] {
        box = client_.create();
        shown = client_.read(box, kShowWalls);
      });
      expectWalls(shown, walls_);
    }
    removeKept(made);
  }

  [[nodiscard]] const Times& times() const { return times_; }
  [[nodiscard]] const Samples& spawn() const { return spawn_; }
  [[nodiscard]] const Samples& spawnShown() const { return spawnShown_; }

 private:
  void removeKept(const std::vector<Box>& made) {
    for (const Box& box : made) times_.removeKept.time([&] { client_.remove(box); });
    host_.settle();
  }

  PoolHost& host_;
  PoolClient client_;
  const std::string_view walls_;
  const Box used_;
  Times times_;
  Samples spawn_;
  Samples spawnShown_;
};

// Half of all are as quick as this, if anything is promised.
struct Promise {
  double millis = 0;
};

void addTimes(Report& report, const std::string& what, const Samples& samples, const Samples& bare,
              Promise promise = {}) {
  Figure& half =
      report.add(what + ", p50", millis(samples.median()))
          .beside(millis(bare.median()) + " posix_spawn", samples.median() / bare.median());
  if (promise.millis > 0) {
    half.promise("≤ " + millis(promise.millis), samples.median() <= promise.millis);
  }
  report.add(what + ", p99", millis(samples.percentile(99)))
      .beside(millis(bare.percentile(99)) + " posix_spawn",
              samples.percentile(99) / bare.percentile(99));
}

void measureBehind(const Settings& settings, Report& report, const std::string& walls) {
  progress("single clients, walls: " + walls);
  PoolHost host(settings.host, walls);
  Rounds rounds(host, walls);
  constexpr int kEach = 50;
  const int count = settings.quick ? 2 : 12;
  for (int i = 0; i < count; ++i) {
    rounds.bare(kEach);
    rounds.create(kEach);
    rounds.later(2 * kEach);
    rounds.first(kEach, &Times::first);
    rounds.firstShown(kEach);
    if (walls == "full") rounds.first(kEach, &Times::firstNoNet, R"({"network":"none"})");
  }

  const Times& times = rounds.times();
  const Samples& bare = rounds.spawn();
  const std::string behind = " (" + walls + ")";
  addTimes(report, "create" + behind, times.create, bare, {.millis = 1});
  addTimes(report, "create + first exec /bin/true" + behind, times.first, bare, {.millis = 2.5});
  addTimes(report, "create + first exec that shows its walls" + behind, times.firstShown,
           rounds.spawnShown(), {.millis = 2.5});
  if (walls == "full") {
    addTimes(report, "create + first exec, network none" + behind, times.firstNoNet, bare);
  }
  addTimes(report, "later exec /bin/true" + behind, times.later, bare,
           {.millis = 1.25 * bare.median() + 0.3});
  addTimes(report, "delete without a keeper" + behind, times.remove, bare);
  addTimes(report, "delete with a keeper" + behind, times.removeKept, bare);
}

}  // namespace

void measurePoolLatency(const Settings& settings, Report& report) {
  for (const char* walls : {"full", "restricted"}) measureBehind(settings, report, walls);
}

}  // namespace cay::bench
