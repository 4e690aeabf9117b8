#pragma once

#include <filesystem>
#include <string>

/// Folders that tools make for themselves, and leave behind when they are killed.
namespace hortator::tools {

/// Makes `folder` and notes in it that this process has it. Where that cannot be it is not noted, and nobody will
/// remove the folder.
void claim_folder(const std::filesystem::path& folder);

/// Removes what is called `tool`-... below `below` and is certainly of nobody any more: folders of this user that a
/// process has claimed that ran on this machine, since it was started, among the processes that are seen from here, and
/// is not there any more.
void remove_leftovers(const std::filesystem::path& below, const std::string& tool);

}  // namespace hortator::tools
