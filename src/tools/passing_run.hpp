#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "mpi/communicator.hpp"

namespace hortator::tools {

/// What a tool does on all ranks, and a folder of its own for it, that all ranks see. It is there already where it
/// could be made.
using PassingBody = std::function<void(const mpi::Communicator& world, const std::filesystem::path& folder)>;

/// hortator::run() for tools. They leave no run behind: what a run writes goes, with all else that is put there, into a
/// folder below `below` that is gone at the end; unless HORTATOR_RUN_DIR asks for a run's records. A job that is
/// killed leaves it to the next one there. @collective over the world
int run_in_passing(const std::string& tool, const std::filesystem::path& below, const PassingBody& body);

}  // namespace hortator::tools
