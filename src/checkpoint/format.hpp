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

/// "models/0/weight" lies in the folder "models/0" under the name "weight".
struct Place {
  std::string folder;
  std::string name;
};

inline Place place_of(const std::string& entry) {
  const auto slash = entry.rfind('/');
  if (slash == std::string::npos) return {.folder = "", .name = entry};
  return {.folder = entry.substr(0, slash), .name = entry.substr(slash + 1)};
}

}  // namespace hortator::checkpoint
