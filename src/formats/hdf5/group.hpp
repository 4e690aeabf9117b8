#pragma once

#include <string>
#include <variant>
#include <vector>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

/// A path in a file: "models/0/weight" is "weight" in the group "models/0".
struct GroupPath {
  std::string folder;
  std::string name;
};

inline GroupPath place_of(const std::string& entry) {
  const auto slash = entry.rfind('/');
  if (slash == std::string::npos) return {.folder = "", .name = entry};
  return {.folder = entry.substr(0, slash), .name = entry.substr(slash + 1)};
}

Group root_group(const File& file);

/// Throws if it is neither a group nor a dataset.
std::variant<Group, Dataset> open_object(const Group& group, const std::string& name);

/// Returns the sorted names in a group. Throws for soft and external links, which are never followed.
std::vector<std::string> children(const Group& group);

}  // namespace hortator::formats
