#include "engine/job_folder.h"

#include <fcntl.h>

#include "sys/file.h"
#include "sys/io.h"
#include "sys/remove_tree.h"

namespace cay::engine {
namespace {

constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kOwnerFile = 0600;
// The job sees what is in it by mounts, with the rights of everybody.
constexpr mode_t kForAll = 0755;
constexpr size_t kMostSpecBytes = 64 << 20;
constexpr std::string_view kUnfinished = "new.";  // no job is called so

Result<Fd> openFolder(const std::string& path) {
  return sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

Result<> JobFolder::write(const char* name, std::string_view text) const {
  CAY_ASSIGN(const Fd folder, openFolder(path_));
  const std::string half = std::string(name) + ".new";
  {
    CAY_ASSIGN(const Fd file, sys::openAt(folder.get(), half.c_str(),
                                          O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kOwnerFile));
    CAY_TRY(sys::writeAll(file.get(), text));
  }
  return sys::renameAt(folder.get(), half.c_str(), folder.get(), name);
}

Result<JobFolder> JobFolder::make(const std::string& jobs, const JobSpec& spec,
                                  const JobState& state) {
  CAY_ASSIGN(const Fd parent, openFolder(jobs));
  if (sys::statAt(parent.get(), spec.id.c_str())) {
    return fail(Code::kConflict, "there is a job " + spec.id + " already");
  }
  const std::string name = std::string(kUnfinished) + spec.id;
  const JobFolder half(jobs + "/" + name);
  const auto fill = [&]() -> Result<> {
    CAY_TRY(sys::makeDirectoryAt(parent.get(), name.c_str(), kOwnerOnly));
    CAY_TRY(sys::makeDirectoryAt(parent.get(), (name + "/etc").c_str(), kForAll));
    CAY_TRY(half.save(spec));
    CAY_TRY(half.save(state));
    return sys::renameAt(parent.get(), name.c_str(), parent.get(), spec.id.c_str());
  };
  if (auto filled = fill(); !filled) {
    (void)sys::removeTree(parent.get(), name.c_str());
    return std::unexpected(std::move(filled).error());
  }
  return JobFolder(jobs + "/" + spec.id);
}

Result<std::vector<JobFolder>> JobFolder::all(const std::string& jobs) {
  CAY_ASSIGN(const Fd parent, openFolder(jobs));
  CAY_ASSIGN(const auto entries, sys::readDirectory(parent.get()));
  std::vector<JobFolder> out;
  for (const sys::DirEntry& entry : entries) {
    if (entry.name.starts_with(kUnfinished)) {
      CAY_TRY(sys::removeTree(parent.get(), entry.name.c_str()));
    } else {
      out.emplace_back(jobs + "/" + entry.name);
    }
  }
  return out;
}

Result<JobSpec> JobFolder::spec() const {
  CAY_ASSIGN(const Fd folder, openFolder(path_));
  CAY_ASSIGN(const std::string text, sys::readFileAt(folder.get(), "spec.json", kMostSpecBytes));
  return parseSpec(text);
}

Result<> JobFolder::save(const JobSpec& spec) const {
  return write("spec.json", specText(spec));
}

Result<JobState> JobFolder::state() const {
  CAY_ASSIGN(const Fd folder, openFolder(path_));
  CAY_ASSIGN(const std::string text, sys::readFileAt(folder.get(), "state.json"));
  return parseState(text);
}

Result<> JobFolder::save(const JobState& state) const {
  return write("state.json", stateText(state));
}

Result<> JobFolder::remove() const {
  const size_t at = path_.rfind('/');
  CAY_ASSIGN(const Fd parent, openFolder(path_.substr(0, at)));
  // One name less first, so that what is left half removed passes for unfinished.
  const std::string name = path_.substr(at + 1);
  const std::string half = std::string(kUnfinished) + name;
  if (auto renamed = sys::renameAt(parent.get(), name.c_str(), parent.get(), half.c_str());
      !renamed) {
    if (renamed.error().code == Code::kNotFound) return {};
    return renamed;
  }
  return sys::removeTree(parent.get(), half.c_str());
}

}  // namespace cay::engine
