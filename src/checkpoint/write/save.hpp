#pragma once

#include <filesystem>
#include <hortator/checkpoint.hpp>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/write/direct_writer.hpp"
#include "checkpoint/write/mpio_writer.hpp"
#include "core/range.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// A tensor of which each rank has a part. All but the part's values is the same on all ranks.
struct Share {
  formats::TensorSpec whole = {};
  std::vector<core::Range> of_ranks =
      {};                ///< what each rank brings, in its row-major elements: each element comes once
  at::Tensor part = {};  ///< this rank's, of one dimension
};

struct Snapshot {
  StateDict common = {};                     ///< the same names, shapes, types and values on all ranks
  StateDict own = {};                        ///< this rank's alone, such as the states of its random number generators
  std::map<std::string, Share> shares = {};  ///< named as the common ones, and written as they lie
};

struct SaveOptions {
  CheckpointWriter writer = CheckpointWriter::direct;
  std::vector<std::size_t> file_of = {};  ///< into which file each rank writes, 0, 1, ...; empty: all into one
  std::int64_t step = 0;
  std::int64_t updates = 0;
  std::map<std::string, std::int64_t> mesh = {};
  std::map<std::string, std::string> metadata = {};  ///< rank 0's counts
  EndJob end_job = end_job_at_once;                  ///< where the MPI-IO writer leaves nothing else to do
};

/// Agrees with all ranks on what is saved, where and by whom; then makes the folder aside and the empty files in it.
/// When anything fails on any rank, all throw the same error and nothing is left. @collective
Task prepare(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
             const SaveOptions& options);

/// Writes `snapshot` into `folder`, all ranks together, and returns the folder's full path. What was saved there before
/// is replaced at the very end, by a rename. When anything fails on any rank, all throw the same error, the older
/// checkpoint is what it was and nothing else is left. @collective
std::filesystem::path save(const mpi::Communicator& comm, const std::filesystem::path& folder, const Snapshot& snapshot,
                           const SaveOptions& options = {});

}  // namespace hortator::checkpoint
