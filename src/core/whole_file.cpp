#include "core/whole_file.hpp"

#include <fstream>
#include <limits>

namespace hortator::core {

std::optional<std::string> read_whole(const std::filesystem::path& file) {
  return read_at_most(file, std::numeric_limits<std::uint64_t>::max());
}

std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t most) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  // A file may grow meanwhile, and a pipe has no size. (Buffers' iterators throw where reading fails.)
  std::string content;
  constexpr std::size_t piece = std::size_t{1} << 16;
  while (in && content.size() <= most) {
    const auto before = content.size();
    content.resize(before + piece);
    in.read(content.data() + before, piece);
    content.resize(before + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || content.size() > most) return {};
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

}  // namespace hortator::core
