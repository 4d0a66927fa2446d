// Where things are in the state folder of a hub, which only its owner can look into.
//
//   lock, name         held by its hub; a name for what lives outside (sandbox/paths.h)
//   run.json           where the hub can be reached (run_file.h)
//   hub.db             what must survive (schema.h)
//   flavors.json       what jobs can ask for, if the operator says (engine/flavors.h)
//   tokens/<role>      the first tokens (first_start.h)
//   ca/                the private CA (ca.h)
//   images/            what was pulled and imported (layers/image_index.h)
//   jobs/, sandboxes/  what the engine keeps of jobs; their walls (sandbox/pool_folder.h)
//   volumes/           what jobs can mount
#pragma once

#include <string>
#include <string_view>

namespace cay::hub {

struct Paths {
  std::string state;  // absolute, without links

  [[nodiscard]] std::string database() const { return state + "/hub.db"; }
  [[nodiscard]] std::string flavors() const { return state + "/flavors.json"; }
  [[nodiscard]] std::string tokens() const { return state + "/tokens"; }
  [[nodiscard]] std::string token(std::string_view role) const {
    return tokens().append("/").append(role);
  }
  [[nodiscard]] std::string ca() const { return state + "/ca"; }
  [[nodiscard]] std::string images() const { return state + "/images"; }
  [[nodiscard]] std::string jobs() const { return state + "/jobs"; }
  [[nodiscard]] std::string sandboxes() const { return state + "/sandboxes"; }
  [[nodiscard]] std::string volumes() const { return state + "/volumes"; }
};

}  // namespace cay::hub
