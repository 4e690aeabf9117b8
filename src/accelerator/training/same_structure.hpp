#pragma once

#include <hortator/detail/leaves.hpp>
#include <string_view>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// What ranks that bring structures to a collective must have alike, besides the places of the tensors.
enum class Alike { shapes, dimensions };

/// Returns when all ranks brought the same structure; otherwise all throw, naming the first place where a rank differs
/// from rank 0. `verb` is the collective. @collective Costs one reduction of 16 bytes when all is well.
void check_same_structure(const mpi::Communicator& comm, std::string_view verb, const std::vector<detail::Leaf>& leaves,
                          Alike alike);

}  // namespace hortator::accelerator
