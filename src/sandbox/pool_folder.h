// The state folder of a host with many sandboxes: makes, finds and removes their folders. Blocking;
// safe from every thread, since the files themselves are its only state.
//
//   lock, name                as with one sandbox (paths.h)
//   images/, disks/, spares/  of the layers room
//   new/<id>/                 being made
//   new/batch.<id>            ids that are being made together
//   sandboxes/<id>/           a sandbox: record.json (or ready.<slot>, while it is nobody's),
//                             keeper.sock, execs/, and its files:
//     tops/<n>/{upper,work}   the writable top of each overlay of its image, or disk.img with them
//     home/                   in restricted mode
//   trash/<id>.<slot>/        being removed
//   gone.jsonl                the dead of the last hour (gone_list.h)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"
#include "layers/disk_image.h"
#include "layers/spare_folders.h"
#include "sandbox/paths.h"
#include "sandbox/pool_record.h"
#include "sandbox/user_ids.h"

namespace cay::sandbox {

class PoolFolder {
 public:
  // Makes what is missing and takes the lock (kConflict if another host holds it).
  static Result<PoolFolder> open(const std::string& path);
  // Before anything below is used. In restricted mode the users of sandboxes must be able to reach
  // their homes; kInvalid if they cannot.
  // `ids`: those that its sandboxes are to have, where others share the machine with us.
  Result<> fitFor(isolation::Mode mode, const std::optional<UserIds>& ids = std::nullopt);

  [[nodiscard]] int fd() const { return state_.folder.get(); }
  [[nodiscard]] const std::string& name() const { return state_.name; }
  [[nodiscard]] const UserIds& userIds() const { return userIds_; }
  // Absolute paths.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string sandboxesPath() const { return path_ + "/sandboxes"; }
  [[nodiscard]] std::string imagesPath() const { return path_ + "/images"; }
  [[nodiscard]] std::string homePath(const std::string& id) const {
    return sandboxesPath() + "/" + id + "/home";
  }
  [[nodiscard]] SandboxFolder of(const std::string& id) const {
    return {.base = state_.folder.get(), .prefix = "sandboxes/" + id + "/"};
  }

  // What is in the folder of a sandbox whose image has so many overlays.
  [[nodiscard]] layers::Shape shapeOf(const PoolSpec& spec, size_t overlays) const;

  // Makes the folders of sandboxes that were asked for together, with their records. Either all are
  // there afterwards, also after a crash at any point, or none.
  [[nodiscard]] Result<> make(const std::vector<PoolRecord>& records, size_t overlays) const;
  // Makes the folder of a sandbox that nobody has asked for yet.
  [[nodiscard]] Result<> makeReady(const PoolRecord& record, size_t overlays) const;
  // Turns such a one into what the record says; id and slot are as they were.
  [[nodiscard]] Result<> adopt(const PoolRecord& record) const;
  // To be called in the background after that.
  void refill() const { spares_->refill(); }

  struct Trashed {
    std::string prefix;                  // of its paths
    std::optional<uint32_t> slot;        // that it still has
    std::optional<layers::Shape> shape;  // if it can be used again
  };
  // Takes a sandbox away from where sandboxes are found.
  [[nodiscard]] Result<Trashed> discard(const std::string& id, std::optional<uint32_t> slot) const;
  // Removes what has been taken away. Takes as long as there are files.
  [[nodiscard]] Result<> remove(const Trashed& what) const;

  struct Found {
    std::vector<PoolRecord> records;
    std::vector<Trashed> trash;
  };
  // What an earlier host left, after sweeping what it had not finished making. What nobody had
  // asked for goes to the trash, and so does a sandbox whose record is broken: nobody could have
  // its token.
  [[nodiscard]] Result<Found> recover() const;

 private:
  PoolFolder() = default;
  [[nodiscard]] Result<> build(const PoolRecord& record, const layers::Shape& shape) const;
  // The slot of one that nobody has asked for.
  [[nodiscard]] std::optional<uint32_t> readySlot(const std::string& id) const;
  [[nodiscard]] Result<> publish(const std::vector<PoolRecord>& records) const;
  [[nodiscard]] Result<> sweepUnfinished() const;
  // The slot by who owns the files of a sandbox; nullopt if it has none of its own.
  [[nodiscard]] std::optional<uint32_t> slotByFiles(const std::string& id) const;

  LockedFolder state_;
  Fd new_;
  Fd sandboxes_;
  Fd trash_;
  std::unique_ptr<layers::SpareFolders> spares_;
  std::unique_ptr<layers::DiskImages> disks_;
  std::string path_;
  isolation::Mode mode_ = isolation::Mode::kFull;
  UserIds userIds_;
};

}  // namespace cay::sandbox
