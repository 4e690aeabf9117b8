#include "base/whole_file.hpp"

#include <array>
#include <fstream>

namespace hortator::base {

std::optional<std::string> read_whole(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  std::string content;
  std::array<char, 4096> block{};
  do {  // not by a buffer's iterators: those throw where reading fails
    in.read(block.data(), block.size());
    content.append(block.data(), static_cast<std::size_t>(in.gcount()));
  } while (in);
  if (in.bad()) return {};
  return content;
}

bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  {
    std::ofstream out(aside, std::ios::binary);
    out << content;
    if (!out.flush()) return false;
  }
  std::filesystem::rename(aside, file, error);
  return !error;
}

}  // namespace hortator::base
