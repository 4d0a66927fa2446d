// The built-in image `host`: the machine's own programs, without what is private to it.
//
// Its root is a skeleton that we prepare: a copy of what everybody may read of /etc, the package
// manager's database, empty folders for the rest. Over it lie the machine's own /usr and /opt (and
// /bin, /lib … where they are not links into /usr), each below a mask that hides what not everybody
// may read: uid 0 inside has the rights of the owner over all that root owns. Submounts are never
// part of it.
//
//   <images>/host/<version>/skeleton      the root
//   <images>/host/<version>/masks/<name>  what is hidden of /<name>, as overlay whiteouts
//   <images>/host/new-<id>                being made or removed
//
// A version never changes once it is there. A new one is made when the machine has changed in a way
// that is cheap to see (packages, settings, a reboot), or after a day.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "layers/image.h"

namespace cay::layers {

class HostImage {
 public:
  // `images` must exist, be absolute and belong to us alone. `root` is what the image is made of.
  HostImage(std::string images, isolation::Mode mode, std::string root = "/")
      : images_(std::move(images)), mode_(mode), root_(std::move(root)) {}

  // For a new sandbox: what refresh() has found, or, the first time, what it finds now.
  Result<Image> current();
  // Looks whether the machine has changed, and prepares a new version if it has, which takes
  // seconds. To be called at the start and then every few seconds; sandboxes can be made meanwhile.
  Result<> refresh();
  // For a sandbox that was made with that version; kNotFound if it is not there any more.
  Result<Image> restore(const std::string& version) const;

  // Removes the versions that are not in `inUse` and not the one for new sandboxes, and what was
  // left half-made. A version counts as in use from current() on. What cannot be removed now is
  // removed the next time.
  void removeUnused(const std::set<std::string>& inUse);

 private:
  Image last();
  Result<Fd> versionsFolder() const;
  Result<std::string> findFresh(int versions, const std::string& fingerprint) const;
  Result<std::string> prepare(int versions, const std::string& fingerprint) const;
  Result<> build(int versions, const std::string& name) const;
  [[nodiscard]] Result<std::string> fingerprintNow() const;

  const std::string images_;
  const isolation::Mode mode_;
  const std::string root_;

  std::mutex building_;  // held while versions are made or removed
  std::mutex mutex_;
  Image last_;  // what current() gives out
};

}  // namespace cay::layers
