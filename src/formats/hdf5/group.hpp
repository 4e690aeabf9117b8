#pragma once

#include <string>
#include <variant>
#include <vector>

#include "formats/hdf5/handle.hpp"

namespace hortator::formats {

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

Group root_group(const File& file);

/// A member of a group; throws when it is neither group nor dataset.
std::variant<Group, Dataset> open_object(const Group& group, const std::string& name);

/// The names directly in a group, sorted. What a soft or external link points to is not followed but refused.
std::vector<std::string> children(const Group& group);

}  // namespace hortator::formats
