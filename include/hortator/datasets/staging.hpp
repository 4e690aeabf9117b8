#pragma once

#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/state.hpp>

namespace hortator {

/// Copies a file to the node's own disk, where the node's ranks can read it without the network, and returns the path
/// of the copy: in `folder`, by default SLURM_TMPDIR, TMPDIR or /tmp, in a subfolder that only the user can access. One
/// rank of each node checks the free space and copies, under a temporary name; the others wait. A copy from an earlier
/// run with the size and time of the original is reused. Copies are kept for later runs: the scheduler clears
/// node-local folders at the end of a job. @collective
HORTATOR_API std::filesystem::path stage_to_node(const State& state, const std::filesystem::path& file,
                                                 const std::filesystem::path& folder = {});

}  // namespace hortator
