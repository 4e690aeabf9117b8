#include "formats/file/folder_listing.hpp"

#include <system_error>

namespace hortator::formats {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

}  // namespace hortator::formats
