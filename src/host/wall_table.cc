#include "host/wall_table.h"

#include <array>
#include <optional>
#include <string>

namespace cay::host {
namespace {

using isolation::Verdict;
using isolation::Wall;
using isolation::Walls;

constexpr char kHost[] = "walls";
constexpr char kNone[] = "walls_network_none";
constexpr char kDisk[] = "walls_disk_mb";

const json::Value* textIn(const json::Value& value, const char* name) {
  const json::Value* found = value.is_object() ? value.get_object().if_contains(name) : nullptr;
  return found != nullptr && found->is_string() ? found : nullptr;
}

std::optional<Verdict> verdictIn(const json::Value& value) {
  const json::Value* name = textIn(value, "verdict");
  for (const Verdict verdict : {Verdict::kHeld, Verdict::kWeaker, Verdict::kAbsent}) {
    if (name != nullptr && name->get_string() == isolation::verdictName(verdict)) return verdict;
  }
  return std::nullopt;
}

Result<Walls> readWalls(const json::Object& object, const char* name) {
  const json::Value* found = object.if_contains(name);
  if (found == nullptr || !found->is_object()) {
    return fail(Code::kInvalid, "'" + std::string(name) + "' must be an object of walls");
  }
  Walls walls;
  for (const auto& [wall, value] : found->get_object()) {
    const auto verdict = verdictIn(value);
    const json::Value* why = textIn(value, "why");
    if (!verdict || why == nullptr) {
      return fail(Code::kInvalid, "'" + std::string(name) + "." + std::string(wall) +
                                      "' must have a known verdict and say why");
    }
    walls.push_back({.name = std::string(wall),
                     .verdict = *verdict,
                     .why = std::string(why->get_string()),
                     .remedy = {}});
  }
  return walls;
}

}  // namespace

Walls WallTable::of(isolation::Network network, const isolation::Limits& limits) const {
  Walls walls = isolation::isOwn(network) ? none : host;
  for (Wall& wall : walls) {
    if (wall.name == limitedDisk.name && limits.diskBytes > 0) wall = limitedDisk;
  }
  return walls;
}

json::Object wallsObject(const Walls& walls) {
  json::Object out;
  for (const Wall& wall : walls) {
    out[wall.name] =
        json::Object{{"verdict", isolation::verdictName(wall.verdict)}, {"why", wall.why}};
  }
  return out;
}

json::Object wallTableObject(const WallTable& table) {
  json::Object out;
  out[kHost] = wallsObject(table.host);
  out[kNone] = wallsObject(table.none);
  out[kDisk] = wallsObject({table.limitedDisk});
  return out;
}

Result<WallTable> readWallTable(const json::Object& object) {
  WallTable table;
  CAY_ASSIGN(table.host, readWalls(object, kHost));
  CAY_ASSIGN(table.none, readWalls(object, kNone));
  CAY_ASSIGN(const Walls disk, readWalls(object, kDisk));
  if (disk.size() != 1) {
    return fail(Code::kInvalid, "'" + std::string(kDisk) + "' must be one wall");
  }
  table.limitedDisk = disk.front();
  return table;
}

}  // namespace cay::host
