#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "mpi/communicator.hpp"

namespace hortator::tools {

/// The work of a tool on all ranks. `folder` is a temporary folder that all ranks see; it exists unless it could not be
/// created.
using TemporaryRunBody = std::function<void(const mpi::Communicator& world, const std::filesystem::path& folder)>;

/// hortator::run() for tools. Everything that the run writes goes into a folder in `below` that is removed at the end,
/// unless HORTATOR_RUN_DIR asks for the records. The folder of a killed tool is removed by the next one that runs
/// there.
/// @collective over the world
int run_temporarily(const std::string& tool, const std::filesystem::path& below, const TemporaryRunBody& body);

}  // namespace hortator::tools
