#include "core/text/foreign_text.hpp"

namespace hortator::core {

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

}  // namespace hortator::core
