#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "tools/doctor/folder.hpp"

namespace hortator::tools::doctor {
namespace {

using enum Severity;

Finding judge_space(const FolderFacts& folder, const std::string& where) {
  const auto message = text::concat(where, ": ", units::bytes(folder.free_bytes), " free");
  if (folder.free_bytes < std::uint64_t{1} << 30) {
    return {"folder", warning, message + ", little for checkpoints", "use a folder on the parallel file system"};
  }
  if (folder.file_system == "tmpfs" || folder.file_system == "ramfs") {
    return {"folder", note, message + ", in this node's memory",
            "other nodes do not see it, and it is lost with the node"};
  }
  return {"folder", ok, message};
}

}  // namespace

Findings judge(const FolderFacts& folder) {
  const auto where = folder.path + (folder.file_system.empty() ? "" : " (" + folder.file_system + ")");
  if (!folder.writing.empty()) {
    return {
        {"folder", error, text::concat(where, " cannot be written: ", folder.writing),
         "use a folder that this user may write to, on a file system that is not mounted read-only: hortator doctor "
         "FOLDER"}};
  }
  Findings findings = {judge_space(folder, where)};
  const auto add = [&findings](const char* check, Severity severity, const std::string& problem,
                               const std::string& message, const char* remedy) {
    findings.push_back(problem.empty() ? Finding{check, ok, "works"}
                                       : Finding{check, severity, message + problem, remedy});
  };
  add("rename", error, folder.renaming, text::concat(where, " does not replace files by rename: "),
      "save elsewhere: a checkpoint is published by one rename, and could be lost here");
  add("fsync", error, folder.syncing, text::concat(where, " does not support fsync: "),
      "save elsewhere: it is unknown when a checkpoint is on disk here");
  add("file locks", warning, folder.flock, text::concat(where, " has no flock: "),
      "Hortator needs none, but h5py and h5dump do: export HDF5_USE_FILE_LOCKING=FALSE, or mount Lustre with -o flock");
  add("byte locks", warning, folder.fcntl, text::concat(where, " has no locks of byte ranges: "),
      "a second run in one folder goes unnoticed, and MPI-IO may need these locks: keep the checkpoint writer at "
      "direct (the "
      "default), or mount Lustre with -o flock");
  return findings;
}

}  // namespace hortator::tools::doctor
