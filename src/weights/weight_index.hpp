#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace hortator::weights {

/// The file of each tensor, in the folder of the index.
using WeightMap = std::map<std::string, std::string>;

/// Parses an index: {"weight_map": {name: file}}, or that map without the outer object. Throws FileError if it is not a
/// valid index, if a name appears twice, or if a file is not in the folder itself. Pure.
WeightMap parse_weight_index(std::string_view json);

/// Reads an index file. Errors name it.
WeightMap read_weight_index(const std::filesystem::path& path);

}  // namespace hortator::weights
