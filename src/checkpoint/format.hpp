#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The names and numbers in a checkpoint that are the format's own: share/doc/checkpoint-format.md.
namespace hortator::checkpoint {

constexpr std::int64_t format_version = 2;
constexpr auto manifest_file = "manifest.json";
constexpr auto view_file = "view.h5";  ///< beside several files: all of them as one, for other programs
constexpr auto format_attribute = "hortator_format";
constexpr auto world_size_attribute = "hortator_world_size";
constexpr auto begin_attribute = "hortator_begin";  ///< of a dataset that is a part of a tensor: its first element
constexpr auto own_prefix = "hortator_";            ///< of attributes of the root that are not entries
constexpr auto ranks_folder = "ranks";              ///< the entries that each rank has for itself

/// Every dataset has a checksum for each of its stretches of so many bytes, whoever writes or reads it.
constexpr std::int64_t block_bytes = std::int64_t{1} << 22;
constexpr std::uint64_t max_manifest_bytes = std::uint64_t{1} << 30;

inline std::string rank_folder(int rank) { return std::string(ranks_folder) + "/" + std::to_string(rank); }

/// "state.h5" where there is one, "state-0.h5" and so on where there are several.
std::string data_file(std::size_t index, std::size_t files);
bool is_data_file(std::string_view name);

/// What a rank that writes asynchronously tells rank 0; gone when the checkpoint is there.
std::string record_file(int rank);

/// Every name that there ever is in a checkpoint's folder.
bool is_our_file(const std::string& name);

}  // namespace hortator::checkpoint
