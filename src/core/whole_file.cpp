#include "core/whole_file.hpp"

#include <fstream>
#include <limits>

namespace hortator::core {

std::optional<std::string> read_whole(const std::filesystem::path& file) {
  return read_at_most(file, std::numeric_limits<std::uint64_t>::max());
}

std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t max) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  // Reads until the end: a file may grow meanwhile, and a pipe has no size. (Stream-buffer iterators would throw on a
  // read error.)
  std::string content;
  constexpr std::size_t chunk = std::size_t{1} << 16;
  while (in && content.size() <= max) {
    const auto before = content.size();
    content.resize(before + chunk);
    in.read(content.data() + before, chunk);
    content.resize(before + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || content.size() > max) return {};
  return content;
}

bool write_whole(const std::filesystem::path& file, const std::filesystem::path& aside, std::string_view content) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  {
    std::ofstream out(aside, std::ios::binary);
    out << content;
    out.close();  // which reports what a file system of a network could not write
    if (!out) return false;
  }
  std::filesystem::rename(aside, file, error);
  return !error;
}

}  // namespace hortator::core
