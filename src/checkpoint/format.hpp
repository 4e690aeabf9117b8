#pragma once

#include <cstdint>
#include <string>

/// The names in a checkpoint that are the format's own: share/doc/checkpoint-format.md.
namespace hortator::checkpoint {

constexpr std::int64_t format_version = 1;
constexpr auto state_file = "state.h5";
constexpr auto format_attribute = "hortator_format";
constexpr auto world_size_attribute = "hortator_world_size";
constexpr auto own_prefix = "hortator_";  ///< of attributes of the root that are not entries
constexpr auto ranks_folder = "ranks";    ///< the entries that each rank has for itself

inline std::string rank_folder(int rank) { return std::string(ranks_folder) + "/" + std::to_string(rank); }

}  // namespace hortator::checkpoint
