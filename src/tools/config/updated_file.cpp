#include "tools/config/updated_file.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

// "  # mine" at the end of a line whose value has no quotes.
std::string comment_of(const std::string& line) {
  if (line.find_first_of("\"'") != std::string::npos) return "";
  const auto begin = line.find(" #");
  return begin == std::string::npos ? "" : line.substr(line.find_last_not_of(' ', begin) + 1);
}

const launching::ConfigEntry* entry_of(const std::vector<launching::ConfigEntry>& entries, std::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return launching::find_key(entry.key, "").name == key; });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

std::string updated_text(std::string_view text, const std::vector<launching::ConfigEntry>& entries,
                         const launching::Layer& answers, const std::string& file) {
  auto lines = text::split(std::string(text), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const auto& [name, answer] : answers) {
    const auto& key = launching::find_key(name, "");
    const auto* entry = entry_of(entries, name);
    if (entry == nullptr) {
      lines.push_back(text::concat(name, ": ", launching::yaml_value(key, answer)));
      continue;
    }
    if (entry->values == answer.values) continue;
    auto& line = lines.at(static_cast<std::size_t>(entry->line - 1));
    if (!line.starts_with(entry->key))
      throw UsageError({.what = text::concat(file, ':', entry->line, ": ", entry->key, " does not begin a line"),
                        .why = "only the lines of changed settings are replaced",
                        .hint = "write the file as lines \"key: value\""});
    line = text::concat(entry->key, ": ", launching::yaml_value(key, answer), comment_of(line));
  }
  return text::join(lines, "\n") + "\n";
}

}  // namespace hortator::tools
