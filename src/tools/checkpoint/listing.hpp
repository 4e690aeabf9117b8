#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"

namespace hortator::tools::checkpoints {

/// The checkpoints at `place`: itself, or those directly in it, in its folder `checkpoints`, or its `checkpoint`; in
/// the order of their names, numbers by their value. What saves that were killed have left is among them.
std::vector<std::filesystem::path> find_all(const std::filesystem::path& place);

/// A line of headings and one for each.
std::string table(const std::vector<std::filesystem::path>& folders);

/// What a checkpoint holds, as a tree.
std::string tree(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);

}  // namespace hortator::tools::checkpoints
