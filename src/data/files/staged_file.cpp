#include "data/files/staged_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <hortator/datasets/staging.hpp>
#include <iomanip>

#include "core/activity/activity.hpp"
#include "core/call_site.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/file/file_error.hpp"
#include "formats/file/replacement.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "runtime/world.hpp"

namespace hortator::data {
namespace {

namespace fs = std::filesystem;

void require(const std::error_code& error, std::string_view task) {
  if (error) formats::throw_system_error(task, error.value());
}

std::uintmax_t size_of(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  require(error, text::concat("read ", file));
  return bytes;
}

fs::file_time_type time_of(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  require(error, text::concat("read ", file));
  return time;
}

// The folder must belong to this user: in a world-writable folder, a file of the expected name may be another user's.
fs::path own_folder(const fs::path& folder) {
  auto own = folder / text::concat("hortator-", ::geteuid());
  if (::mkdir(own.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    formats::throw_system_error(text::concat("create the folder ", own), errno);
  struct stat facts {};
  if (::lstat(own.c_str(), &facts) != 0) formats::throw_system_error(text::concat("read the folder ", own), errno);
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::geteuid()) {
    throw formats::FileError({.what = text::concat(own, " is not a folder of this user's"),
                              .why = "another user could change the files in it",
                              .hint = "remove it, or use another folder"});
  }
  return own;
}

// Files of the same name from different folders get different names.
std::string staged_name(const fs::path& original) {
  return text::concat(std::hex, std::setfill('0'), std::setw(16), core::hash(original.native()), '-',
                      original.filename().string());
}

}  // namespace

fs::path node_folder(const core::Variables& variables) {
  for (const auto* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    const auto folder = variables(name);
    if (folder && !folder->empty()) return *folder;
  }
  return "/tmp";
}

StagedFile::StagedFile(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  original_ = fs::canonical(file, error);
  require(error, text::concat("read ", file));
  if (!fs::is_regular_file(original_))
    throw formats::FileError(
        {.what = text::concat(file, " is not a file"), .why = "only single files are copied to the nodes"});
  path_ = own_folder(folder) / staged_name(original_);
  bytes_ = size_of(original_);
  time_ = time_of(original_);
}

bool StagedFile::is_current() const {
  std::error_code error;
  const auto bytes = fs::file_size(path_, error);
  return !error && bytes == bytes_ && fs::last_write_time(path_, error) == time_ && !error;
}

void StagedFile::copy() const {
  std::error_code error;
  const auto space = fs::space(path_.parent_path(), error);
  require(error, text::concat("find the free space of ", path_.parent_path()));
  if (space.available < bytes_) {
    throw formats::FileError(
        {.what = text::concat(path_.parent_path(), " has no space for ", original_, ": ", units::bytes(bytes_),
                              " are needed, ", units::bytes(space.available), " are free"),
         .hint = "use another folder, or read the original file"});
  }
  const fs::path partial = path_.native() + ".new-" + formats::replacement_id();
  try {
    fs::copy_file(original_, partial, error);
    require(error, text::concat("copy ", original_, " to ", partial));
    if (size_of(partial) != bytes_ || size_of(original_) != bytes_ || time_of(original_) != time_)
      throw formats::FileError({.what = text::concat(original_, " has changed while it was copied")});
    fs::last_write_time(partial, time_, error);
    require(error, text::concat("set the time of ", partial));
    fs::rename(partial, path_, error);
    require(error, text::concat("rename ", partial, " to ", path_));
  } catch (...) {
    fs::remove(partial, error);
    throw;
  }
}

}  // namespace hortator::data

namespace hortator {

std::filesystem::path stage_to_node(const State& state, const std::filesystem::path& file,
                                    const std::filesystem::path& folder) {
  const CallSite site(__builtin_return_address(0));
  const activity::PhaseScope phase(activity::Phase::one_side_first);  // copying a terabyte takes long
  const auto& world = state.world();
  std::string path;
  mpi::all_or_none(world.comm(), [&] {
    if (!state.is_local_main_process()) return;
    const data::StagedFile copy(file, folder.empty() ? data::node_folder(core::process_variables()) : folder);
    if (!copy.is_current()) copy.copy();
    path = copy.path().string();
  });
  return mpi::broadcast(world.node(), std::string_view(path));
}

}  // namespace hortator
