// Buckets, models, datasets and spaces as folders of this machine that jobs can have mounted.
//
//   <folder>/{buckets,models,datasets,spaces}/<namespace>/<name>[@<revision>]
//
// Buckets are made when they are first asked for, and belong to jobs: whatever lies in them may
// have been put there to lead us astray. So no link in them is followed, and no name leads out. All
// else is put here by the operator, and never changes through a job. Blocking.
#pragma once

#include <string>

#include "base/error.h"
#include "engine/job.h"
#include "isolation/plan.h"

namespace cay::engine {

class Volumes {
 public:
  // `folder` exists, is absolute and without a link. `server`: a folder with cay-host in it under
  // the name that clients know, which the bucket of that server stands for; empty: there is none.
  explicit Volumes(std::string folder, std::string server = {})
      : folder_(std::move(folder)), server_(std::move(server)) {}

  // kInvalid for names and places that cannot be; kNotFound, with the folder to fill, for what is
  // not here.
  [[nodiscard]] Result<isolation::Bind> resolve(const VolumeRef& volume) const;
  // What can be said without looking at the disk.
  static Result<> check(const VolumeRef& volume);
  // The bucket that the server of sandboxes comes from.
  static bool isServer(const VolumeRef& volume);

 private:
  [[nodiscard]] Result<isolation::Bind> bindOf(const VolumeRef& volume, const std::string& relative,
                                               bool make) const;

  std::string folder_;
  std::string server_;
};

inline constexpr char kServerFile[] = "sbx-server";

}  // namespace cay::engine
