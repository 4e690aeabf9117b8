#pragma once

#include <hortator/detail/leaves.hpp>
#include <string_view>
#include <vector>

#include "mpi/communicator.hpp"

namespace hortator::accelerator {

/// What must be equal between the ranks' structures in a collective, besides the paths of the tensors.
enum class Alike { shapes, dimensions };

/// Throws on all ranks if their structures differ, naming the first path at which a rank differs from rank 0. `verb` is
/// the collective's name. @collective Costs one reduction of 16 bytes when all is well.
void check_same_structure(const mpi::Communicator& comm, std::string_view verb, const std::vector<detail::Leaf>& leaves,
                          Alike alike);

}  // namespace hortator::accelerator
