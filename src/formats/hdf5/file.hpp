#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "formats/hdf5/handle.hpp"
#include "formats/hdf5/memory_file.hpp"

namespace hortator::formats {

/// Creates a file in memory. Its metadata is in the format of HDF5 1.8, which every reader has and which protects each
/// metadata block by a checksum, so that damage is detected.
File create_file(MemoryFile& memory);

/// Property lists of new files, shared with parallel files.
PropertyList creation_list();
PropertyList access_list_for_writing();

/// Opens for reading. Files are never locked, since some parallel file systems hang or fail on locks.
File open_file(const std::filesystem::path& path);

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
