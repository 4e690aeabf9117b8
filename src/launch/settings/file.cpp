#include "launch/settings/file.hpp"

#include <algorithm>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// A one-element list for a single value, and the reverse, is refused: its meaning would be ambiguous.
void check_shape(const Key& key, const ConfigEntry& entry, const std::string& where) {
  const auto wanted = key.kind == KeyKind::list        ? EntryShape::list
                      : key.kind == KeyKind::variables ? EntryShape::map
                                                       : EntryShape::scalar;
  if (entry.shape == wanted) return;
  const auto* form = wanted == EntryShape::list  ? "[first, second]"
                     : wanted == EntryShape::map ? "{NAME: value}"
                                                 : "one value";
  throw UsageError({.what = text::concat(where, entry.key, " has the wrong form"),
                    .hint = text::concat("write ", entry.key, ": ", form)});
}

template <typename Check>
void collect(std::vector<UsageError>& errors, const Check& check) {
  try {
    check();
  } catch (const UsageError& error) {
    errors.push_back(error);
  }
}

// An error in a value of a list or a map names that value's own line.
void check_entry(const Key& key, const ConfigEntry& entry, const std::string& file, std::vector<UsageError>& errors) {
  const auto before = [&](int line) { return text::concat(file, ':', line, ": ", entry.key, ": "); };
  if (entry.shape == EntryShape::scalar) return check_values(key, entry.values, before(entry.line));
  for (std::size_t i = 0; i < entry.values.size(); ++i) {
    collect(errors, [&] { check_values(key, {entry.values[i]}, before(entry.line_of(i))); });
  }
}

void read_entry(const ConfigEntry& entry, const std::string& file, std::vector<std::string>& seen, Layer& layer,
                std::vector<UsageError>& errors) {
  const auto origin = text::concat(file, ':', entry.line);
  const auto before = origin + ": ";
  const auto& key = find_key(entry.key, before);
  const std::string name(key.name);
  if (std::ranges::find(seen, name) != seen.end()) {
    const auto also = entry.key == name ? "" : text::concat(" (", entry.key, " is another name of ", name, ")");
    throw UsageError({.what = before + entry.key + " is given twice" + also, .hint = "keep one of them"});
  }
  if (entry.values.empty()) return;  // null or an empty list: not set
  seen.push_back(name);
  check_shape(key, entry, before);
  check_entry(key, entry, file, errors);
  layer.emplace(name, SettingValue{entry.values, origin});
}

}  // namespace

std::vector<ConfigEntry> open_sections(const std::vector<ConfigEntry>& entries) {
  std::vector<ConfigEntry> opened;
  for (const auto& entry : entries) {
    if (entry.shape != EntryShape::map) {
      opened.push_back(entry);
      continue;
    }
    for (std::size_t i = 0; i < entry.values.size(); ++i) {
      const auto& assignment = entry.values[i];
      const auto end = assignment.find('=');
      const auto value = assignment.substr(end + 1);
      opened.push_back({.key = entry.key + "." + assignment.substr(0, end),
                        .line = entry.line_of(i),
                        .values = value.empty() ? std::vector<std::string>{} : std::vector<std::string>{value}});
    }
  }
  return opened;
}

Layer read_settings(const std::vector<ConfigEntry>& entries, const std::string& file, std::vector<UsageError> errors) {
  Layer layer;
  std::vector<std::string> seen;
  for (const auto& entry : entries) collect(errors, [&] { read_entry(entry, file, seen, layer, errors); });
  throw_all(errors, file);
  return layer;
}

void throw_all(const std::vector<UsageError>& errors, const std::string& file) {
  if (errors.empty()) return;
  if (errors.size() == 1) throw errors.front();
  std::vector<std::string> lines = {text::concat(file, " has ", errors.size(), " errors")};
  for (const auto& error : errors) lines.emplace_back(error.what());
  throw UsageError({.what = text::join(lines, "\n  ")});
}

}  // namespace hortator::launching
