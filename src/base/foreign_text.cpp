#include "base/foreign_text.hpp"

#include <fstream>

namespace hortator::base {

std::optional<std::string> read_at_most(const std::filesystem::path& file, std::uint64_t most) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  // One byte more tells that there is more; a file may grow meanwhile, and a pipe has no size.
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

bool is_shallow(std::string_view json, int levels) {
  int level = 0;
  bool in_words = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char letter = json[i];
    if (letter == '"') in_words = !in_words;
    if (in_words && letter == '\\') ++i;
    if (in_words) continue;
    if (letter == '{' || letter == '[') ++level;
    if (letter == '}' || letter == ']') --level;
    if (level > levels) return false;
  }
  return true;
}

}  // namespace hortator::base
