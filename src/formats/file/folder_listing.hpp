#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace hortator::formats {

/// The names of what is in `folder`, in no order: those that could be read before an error, and none of a folder that
/// cannot be listed. Local; does not throw FileError.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace hortator::formats
