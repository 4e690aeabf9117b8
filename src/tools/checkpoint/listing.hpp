#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"

namespace hortator::tools::checkpoints {

/// Whether `path` is a folder that holds any file of a checkpoint.
bool is_checkpoint(const std::filesystem::path& path);

/// The checkpoints at `path`: itself, or those directly in it or in its folder `checkpoints`, sorted by name (numbers
/// by value). Includes incomplete ones of killed saves.
std::vector<std::filesystem::path> find_all(const std::filesystem::path& path);

/// The checkpoint that `path` names: itself, or the complete one with the highest number that find_all() finds there
/// (without complete ones, a damaged one). A path without any is returned as it is: it may name another kind of file.
std::filesystem::path newest_at(const std::filesystem::path& path);

/// A heading, and one line for each checkpoint.
std::string table(const std::vector<std::filesystem::path>& folders);

/// The same as JSON: an array.
nlohmann::ordered_json json_of_table(const std::vector<std::filesystem::path>& folders);

/// The contents of a checkpoint as JSON: its numbers, and its entries with type, shape and size, or value.
nlohmann::ordered_json json_of_contents(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);

/// Prints an object with schema_version and this member.
void print_json(const std::string& name, nlohmann::ordered_json value);

/// The contents of a checkpoint as a tree.
std::string tree(const std::filesystem::path& folder, const checkpoint::Manifest& manifest);

}  // namespace hortator::tools::checkpoints
