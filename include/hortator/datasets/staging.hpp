#pragma once

#include <filesystem>
#include <hortator/export.hpp>
#include <hortator/state.hpp>

namespace hortator {

/// Copies a file to the node's own disk, where all its ranks read it without the network, and returns where it lies:
/// `folder`, or by default SLURM_TMPDIR, TMPDIR or /tmp, in it a folder of the user's alone. One rank of each node
/// copies, under a name aside, and the others wait. A copy of the same file from an earlier run, with the size and the
/// time of the original, is taken as it is. The space is checked first. Copies are left for later runs: the scheduler
/// clears node-local folders at a job's end. @collective
HORTATOR_API std::filesystem::path stage_to_node(const State& state, const std::filesystem::path& file,
                                                 const std::filesystem::path& folder = {});

}  // namespace hortator
