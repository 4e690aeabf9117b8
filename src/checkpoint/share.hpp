#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <hortator/state_dict.hpp>
#include <span>
#include <vector>

#include "checkpoint/plan.hpp"
#include "checkpoint/structure.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// What this rank writes: runs of elements of some tensors, and where these tensors lie in the file.
struct Share {
  std::vector<at::Tensor> tensors;
  Offsets offsets;
  std::vector<Slab> slabs;
};

/// This rank's share of what all have. Only rank 0 knows the offsets. @collective
Share share_of_common(const mpi::Communicator& comm, const StateDict& common, const Offsets& offsets);

/// All of what this rank alone has. Only rank 0 knows the offsets, of each rank. @collective
Share share_of_own(const mpi::Communicator& comm, const StateDict& own, const std::vector<Offsets>& offsets);

/// Returns when all of it is on the disk.
void write_shares(const std::filesystem::path& file, std::span<const Share> shares);

}  // namespace hortator::checkpoint
