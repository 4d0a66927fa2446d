#include "isolation/probe.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "isolation/bait.h"
#include "isolation/probe_acts.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

struct WallText {
  const char* name;
  const char* remedy;
};

constexpr char kNamespaces[] =
    "run cay-host as root with CAP_SYS_ADMIN, or allow unprivileged user namespaces";
constexpr char kRoot[] = "run cay-host as root with CAP_SYS_ADMIN";
constexpr char kGroups[] = "give cay-host a writable cgroup with this controller";

constexpr WallText kWalls[] = {
    {"user", kNamespaces},
    {"pid", kNamespaces},
    {"mount", kNamespaces},
    {"ipc", kNamespaces},
    {"uts", kNamespaces},
    {"network", "create the sandbox with network none"},
    {"landlock", "use Linux 6.12 or newer with Landlock enabled (lsm=landlock,...)"},
    {"seccomp", "use a kernel with CONFIG_SECCOMP_FILTER"},
    {"identity", kRoot},
    {"capabilities", kRoot},
    {"privileges", "use a kernel that has no_new_privs"},
    {"memory", kGroups},
    {"pids", kGroups},
    {"cpu", kGroups},
    {"disk", "create the sandbox with disk_mb, as root with loop devices"},
};

constexpr std::pair<Outcome, std::string_view> kOutcomes[] = {
    {Outcome::kDenied, "denied"}, {Outcome::kAllowed, "allowed"}, {Outcome::kNone, "none"}};

std::string_view outcomeName(Outcome outcome) {
  return std::ranges::find(kOutcomes, outcome, &std::pair<Outcome, std::string_view>::first)
      ->second;
}

std::map<std::string_view, Tried> parse(std::string_view output) {
  std::map<std::string_view, Tried> out;
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    const size_t first = line.find('\t');
    const size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view word = line.substr(first + 1, second - first - 1);
    for (const auto& [outcome, name] : kOutcomes) {
      if (word == name)
        out[line.substr(0, first)] = {outcome, std::string(line.substr(second + 1))};
    }
  }
  return out;
}

void append(std::string& list, std::string_view act, const std::string& detail) {
  if (!list.empty()) list += ", ";
  list.append(act).append(" (").append(detail).append(")");
}

// By the acts alone.
Wall judgeByActs(const WallText& text, const std::map<std::string_view, Tried>& lines) {
  Wall wall{.name = text.name, .verdict = Verdict::kHeld, .why = {}, .remedy = text.remedy};
  std::string worked;
  std::string failed;
  std::string untried;
  for (const Act& act : acts()) {
    if (act.wall != wall.name) continue;
    const auto line = lines.find(act.name);
    if (line == lines.end()) {
      // The probe did not get that far: what it found before is not the whole truth.
      append(worked, act.name, "perhaps: no word of it");
      wall.verdict = std::max(wall.verdict, Verdict::kWeaker);
      continue;
    }
    const Tried& tried = line->second;
    switch (tried.outcome) {
      case Outcome::kAllowed:
        append(worked, act.name, tried.detail);
        wall.verdict = std::max(
            wall.verdict, act.weight == Weight::kBreaks ? Verdict::kAbsent : Verdict::kWeaker);
        break;
      case Outcome::kDenied:
        append(failed, act.name, tried.detail);
        break;
      case Outcome::kNone:
        append(untried, act.name, tried.detail);
        break;
    }
  }
  if (!worked.empty()) {
    wall.why = "could " + worked;
  } else if (!failed.empty()) {
    wall.why = "could not " + failed;
  } else {
    wall.why = "not tried: " + untried;
  }
  if (failed.empty()) wall.verdict = Verdict::kAbsent;
  return wall;
}

void lower(Wall& wall, Verdict verdict, std::string why) {
  if (wall.verdict >= verdict) return;
  wall.verdict = verdict;
  wall.why = std::move(why);
}

void applyFacts(Wall& wall, Mode mode, const Facts& facts) {
  if (wall.name == "identity" && mode == Mode::kUnprivileged) {
    lower(wall, Verdict::kWeaker,
          "its processes are, outside, those of the user who runs cay-host");
  }
  if (wall.name == "memory" && !facts.memoryGroup) {
    lower(wall, Verdict::kWeaker, "each process is limited, not their sum: " + facts.whyNoGroups);
  }
  if (wall.name == "pids" && !facts.pidsGroup && mode == Mode::kFull) {
    lower(wall, Verdict::kWeaker,
          "each of its users is limited, not their sum: " + facts.whyNoGroups);
  }
  if (wall.name == "cpu") {
    wall.verdict = facts.cpuGroup ? Verdict::kHeld : Verdict::kAbsent;
    wall.why = facts.cpuGroup ? "its group has a share of the processors" : facts.whyNoGroups;
  }
  if (wall.name == "disk") {
    wall.verdict = facts.diskLimited ? Verdict::kHeld : Verdict::kWeaker;
    wall.why = facts.diskLimited
                   ? "its files are on a disk image of their own"
                   : "it can fill the disk up to the reserve that the host keeps free";
  }
}

}  // namespace

int runProbe(std::span<char* const> arguments) {
  const Bait bait = Bait::fromArguments(arguments);
  for (const Act& act : acts()) {
    const Tried tried = act.attempt(bait);
    std::string line = act.name;
    line.append("\t").append(outcomeName(tried.outcome)).append("\t").append(tried.detail);
    // At once: the next act may be the last.
    if (!sys::writeAll(STDOUT_FILENO, line + "\n")) return 1;
  }
  return 0;
}

bool isWhole(std::string_view output) {
  const auto lines = parse(output);
  return std::ranges::all_of(acts(), [&](const Act& act) { return lines.contains(act.name); });
}

Walls judge(Mode mode, std::string_view output, const Facts& facts) {
  const auto lines = parse(output);
  Walls walls;
  for (const WallText& text : kWalls) {
    Wall wall = judgeByActs(text, lines);
    applyFacts(wall, mode, facts);
    if (wall.verdict == Verdict::kHeld) wall.remedy.clear();
    walls.push_back(std::move(wall));
  }
  return walls;
}

}  // namespace cay::isolation
