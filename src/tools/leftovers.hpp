#pragma once

#include <filesystem>
#include <string>

/// Temporary folders of tools, which a killed tool leaves behind.
namespace hortator::tools {

/// Creates `folder` with a file that names this process as its owner. On failure there is no such file, and
/// remove_leftovers() keeps the folder.
void claim_folder(const std::filesystem::path& folder);

/// Removes the folders `tool`-... in `below` whose owner has certainly ended: folders of this user, claimed by a
/// process of this machine since its last boot and of this PID namespace, which no longer exists.
void remove_leftovers(const std::filesystem::path& below, const std::string& tool);

}  // namespace hortator::tools
