#include "runtime/whole_file.hpp"

#include <fstream>

namespace hortator::runtime {

bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  {
    std::ofstream out(aside);
    out << content << '\n';
    if (!out.flush()) return false;
  }
  std::filesystem::rename(aside, file, error);
  return !error;
}

}  // namespace hortator::runtime
