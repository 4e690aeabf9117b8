#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// The names and numbers that the checkpoint format defines; see share/doc/checkpoint-format.md.
namespace hortator::checkpoint {

constexpr std::int64_t format_version = 2;
constexpr auto manifest_file = "manifest.json";
constexpr auto hooks_folder = "hooks";  ///< holds files of the program, which its hooks have written
constexpr auto view_file = "view.h5";   ///< written beside several data files: shows them as one file to other programs
constexpr auto format_attribute = "hortator_format";
constexpr auto world_size_attribute = "hortator_world_size";
constexpr auto begin_attribute =
    "hortator_begin";  ///< of a dataset that holds a piece of a tensor: the index of its first element
constexpr auto own_prefix = "hortator_";  ///< of attributes of the root that are not entries of the state
constexpr auto ranks_folder = "ranks";    ///< holds the entries of each rank's own state

/// The size of a block: every tensor has one checksum for each block, whatever ranks write or read it.
constexpr std::int64_t block_bytes = std::int64_t{1} << 22;
constexpr std::uint64_t max_manifest_bytes = std::uint64_t{1} << 30;

inline std::string rank_folder(int rank) { return std::string(ranks_folder) + "/" + std::to_string(rank); }

/// "state.h5" if there is one data file, otherwise "state-0.h5", "state-1.h5", ...
std::string data_file(std::size_t index, std::size_t files);
/// "frozen.h5", or "frozen-0.h5", ...: data files that several checkpoints may share, as hard links.
std::string frozen_file(std::size_t index, std::size_t files);
/// The name of file `index` of `files`; those from `state_files` on are frozen ones.
std::string stored_file(std::size_t index, std::size_t state_files, std::size_t files);
bool is_data_file(std::string_view name);
bool is_frozen_file(std::string_view name);

/// The file with which a rank that saves in the background sends its report to rank 0. It is removed before the
/// checkpoint is complete.
std::string report_file(int rank);

/// Whether a file of this name can be part of a checkpoint's folder.
bool is_our_file(const std::string& name);

}  // namespace hortator::checkpoint
