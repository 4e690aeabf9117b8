#include "launch/job/template.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

bool is_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
}

template <typename Map>
const auto& find(const Map& map, const std::string& name) {
  const auto value = map.find(name);
  if (value == map.end()) throw Error({.what = "The template contains the unknown name @" + name + "@"});
  return value->second;
}

std::string fill_line(const std::string& line, const TemplateValues& values) {
  std::string filled;
  std::size_t at = 0;
  while (at < line.size()) {
    const auto end = line[at] == '@' ? line.find('@', at + 1) : std::string::npos;
    const auto name = end == std::string::npos ? "" : line.substr(at + 1, end - at - 1);
    if (is_name(name)) {
      filled += find(values.texts, name);
      at = end + 1;
    } else {
      filled += line[at++];
    }
  }
  return filled;
}

// The prefix and the name of "#SBATCH @directives@"; an empty name for any other line.
std::pair<std::string, std::string> repeated(const std::string& line, const TemplateValues& values) {
  if (line.starts_with("#@ ")) return {"", line.substr(3)};
  const auto at = line.find(" @");
  if (at == std::string::npos || !line.ends_with('@') || at + 3 > line.size()) return {};
  const auto name = line.substr(at + 2, line.size() - at - 3);
  return values.lines.contains(name) ? std::pair(line.substr(0, at + 1), name) : std::pair<std::string, std::string>{};
}

}  // namespace

std::string fill(std::string_view text, const TemplateValues& values) {
  std::string filled;
  auto lines = text::split(std::string(text), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const auto& line : lines) {
    const auto [prefix, name] = repeated(line, values);
    if (name.empty()) {
      filled += fill_line(line, values) + "\n";
      continue;
    }
    for (const auto& inserted : find(values.lines, name)) filled += prefix + inserted + "\n";
  }
  return filled;
}

}  // namespace hortator::launching
