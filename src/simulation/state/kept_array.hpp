#pragma once

#include <ATen/core/Tensor.h>
#include <hortator/hortator.h>

#include <cstdint>
#include <string>
#include <vector>

#include "accelerator/prepared/checkpoint_part.hpp"
#include "mpi/communicator.hpp"

namespace hortator::simulation {

/// An array of the simulation that is saved with checkpoints and restored in place.
class KeptArray {
 public:
  /// Throws UsageError on all ranks if their arrays do not fit together. @collective
  KeptArray(const mpi::Communicator& comm, std::string name, at::Tensor tensor, hortator_distribution distribution);

  const std::string& name() const { return name_; }
  /// Its part of a checkpoint.
  accelerator::CheckpointPart part() const;

 private:
  void save(checkpoint::Snapshot& snapshot) const;
  std::vector<std::string> misfits(const checkpoint::Reader& reader) const;
  void load(const checkpoint::Reader& reader) const;
  std::vector<std::int64_t> whole_shape() const;
  /// Whether a checkpoint has what each rank keeps of its own.
  bool has_own_of_all(const checkpoint::Reader& reader) const;
  std::string path() const { return "kept/" + name_; }

  std::string name_;
  at::Tensor tensor_;
  hortator_distribution distribution_;
  int rank_;
  int world_;
  std::vector<std::int64_t> rows_ = {};     ///< of each rank, where the array is distributed by rows
  std::vector<std::uint64_t> shapes_ = {};  ///< hashed, of each rank, where it has its own
};

}  // namespace hortator::simulation
