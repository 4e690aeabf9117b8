#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "mpi/communicator.hpp"
#include "runtime/identity/folder_lock.hpp"

namespace hortator::simulation {

/// A run's own folder: no other run of hortator_begin has it, in this process or in another one.
class RunFolderClaim {
 public:
  /// Throws UsageError on all ranks if another run has the folder: at once if it belongs to this job, and otherwise if
  /// it has not ended soon. `settings` names this run to others. @collective
  RunFolderClaim(const mpi::Communicator& comm, const std::filesystem::path& folder, const std::string& settings);

 private:
  /// In this process.
  class Entry {
   public:
    Entry(std::filesystem::path folder, const std::string& settings);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    std::filesystem::path folder_;
  };

  std::optional<Entry> entry_;
  std::optional<runtime::FolderLock> lock_;  ///< on rank 0
};

}  // namespace hortator::simulation
