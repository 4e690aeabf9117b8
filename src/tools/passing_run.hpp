#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "mpi/communicator.hpp"

/// Temporary folders of tools, which a killed tool leaves behind.
namespace hortator::tools {

/// Creates `folder` with a file that names this process as its owner. On failure there is no such file, and
/// remove_leftovers() keeps the folder.
void claim_folder(const std::filesystem::path& folder);

/// Removes the folders `tool`-... in `below` whose owner has certainly ended: folders of this user, claimed by a
/// process of this machine since its last boot and of this PID namespace, which no longer exists.
void remove_leftovers(const std::filesystem::path& below, const std::string& tool);

/// The work of a tool on all ranks. `folder` is a temporary folder that all ranks see; it exists unless it could not be
/// created.
using TemporaryRunBody = std::function<void(const mpi::Communicator& world, const std::filesystem::path& folder)>;

/// hortator::run() for tools. Everything that the run writes goes into a folder in `below` that is removed at the end,
/// unless HORTATOR_RUN_DIR asks for the records. The folder of a killed tool is removed by the next one that runs
/// there.
/// @collective over the world
int run_temporarily(const std::string& tool, const std::filesystem::path& below, const TemporaryRunBody& body);

}  // namespace hortator::tools
