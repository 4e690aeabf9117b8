#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace hortator::weights {

/// In which file of the index's folder each tensor lies.
using WeightMap = std::map<std::string, std::string>;

/// What an index says: {"weight_map": {name: file}}, or just that map. Throws FileError, with the reason, for what is
/// none, and for files that are not in the folder itself. Pure.
WeightMap parse_weight_index(std::string_view json);

/// Of a file. Errors name it.
WeightMap read_weight_index(const std::filesystem::path& path);

}  // namespace hortator::weights
