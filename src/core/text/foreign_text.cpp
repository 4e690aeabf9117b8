#include "core/text/foreign_text.hpp"

namespace hortator::core {

bool is_shallow(std::string_view json, int levels) {
  int level = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '{' || c == '[') ++level;
    if (c == '}' || c == ']') --level;
    if (level > levels) return false;
  }
  return true;
}

}  // namespace hortator::core
