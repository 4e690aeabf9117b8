#pragma once

#include <filesystem>
#include <functional>
#include <hortator/checkpoint.hpp>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/write/direct_writer.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "checkpoint/write/save_task.hpp"
#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// A tensor that is divided among the ranks. All fields but the values of `part` are the same on all ranks.
struct ShardedTensor {
  formats::TensorSpec whole = {};
  std::vector<core::Range> of_ranks =
      {};                ///< the elements that each rank holds, in row-major order: each element exactly once
  at::Tensor part = {};  ///< this rank's elements, one-dimensional
};

struct Snapshot {
  StateDict common = {};  ///< the same names, shapes, types and values on all ranks
  StateDict own = {};     ///< this rank's own, such as the state of its random number generators
  std::map<std::string, ShardedTensor> shards = {};  ///< share the names of `common`; each rank writes its part
  /// Return the values of tensors of `common` that are on the meta device. Called when the tensor is written; the
  /// result is released afterwards. Only the direct writer calls them.
  std::map<std::string, std::function<at::Tensor()>> readers = {};
  /// Names of common tensors that are not trained: checkpoints may share their files. Ranks may know different ones.
  std::set<std::string> frozen = {};
};

struct SaveOptions {
  CheckpointWriter writer = CheckpointWriter::direct;
  std::vector<std::size_t> file_of =
      {};  ///< the number of the file that each rank writes to, 0, 1, ...; empty: all write to one file
  std::int64_t step = 0;
  std::int64_t updates = 0;
  std::map<std::string, std::int64_t> mesh = {};
  std::map<std::string, std::string> metadata = {};  ///< rank 0's is written
  EndJob end_job = end_job_at_once;                  ///< for the MPI-IO writer
  bool replaces_damaged = false;  ///< what was at the folder could not be read: it is moved aside and stays
  std::optional<formats::Replacement> begun = {};  ///< by begin(), of the same folder
  bool shares_frozen = false;  ///< puts frozen tensors in files that later checkpoints link; with the direct writer
  std::vector<std::filesystem::path> earlier = {};  ///< on rank 0: checkpoints whose frozen files it may link
};

/// Creates the temporary folder of a checkpoint before the rest of it, with an empty folder for files of the program.
/// If that fails, all ranks throw the same error and nothing is left. Rank 0 abandons it if it is not saved.
/// @collective
formats::Replacement begin(const mpi::Communicator& comm, const std::filesystem::path& folder, bool replaces_damaged);

/// Throws UsageError on all ranks, naming the entry, unless each rank's state can be stored. @collective
void require_complete(const mpi::Communicator& comm, const Snapshot& snapshot, const SaveOptions& options);

/// Agrees with all ranks on what is saved and by which rank. `replacement` may be another folder on other nodes, where
/// files are those of a node. Tensors in `frozen` get files of their own. Creates nothing. @collective
SaveTask plan(const mpi::Communicator& comm, formats::Replacement replacement, const Snapshot& snapshot,
              const SaveOptions& options, const std::set<std::string>& frozen = {});

/// Agrees with all ranks on what is saved, where and by which rank, then creates the temporary folder with empty files.
/// If anything fails on any rank, all ranks throw the same error and nothing is left. @collective
SaveTask prepare(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                 const SaveOptions& options);

/// Writes `snapshot` to `folder` and returns the folder's full path. An older checkpoint there is replaced at the very
/// end, by a rename. If anything fails on any rank, all ranks throw the same error, the older checkpoint is unchanged
/// and nothing else is left. @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                           const SaveOptions& options = {});

/// save() that reports its progress: the direct writer calls `advance`. @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                           const SaveOptions& options, const Advance& advance);

}  // namespace hortator::checkpoint
