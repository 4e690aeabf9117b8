#include "launch/settings/file.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::launching {
namespace {

// A list of one where one value is meant, and the other way round, would mean something else tomorrow.
void check_shape(const Key& key, const Entry& entry, const std::string& where) {
  const auto wanted = key.kind == Kind::list ? Shape::list : key.kind == Kind::variables ? Shape::map : Shape::scalar;
  if (entry.shape == wanted) return;
  const auto* form = wanted == Shape::list ? "[first, second]" : wanted == Shape::map ? "{NAME: value}" : "one value";
  throw UsageError({.what = text::concat(where, key.name, " has the wrong form"),
                    .hint = text::concat("write ", key.name, ": ", form)});
}

// Each word of a list or a map is told by its own line.
void check_words_of(const Key& key, const Entry& entry, const std::string& file) {
  const auto before = [&](int line) { return text::concat(file, ':', line, ": "); };
  if (entry.shape == Shape::scalar) return check_text(key, entry.words, before(entry.line));
  for (std::size_t i = 0; i < entry.words.size(); ++i) check_text(key, {entry.words[i]}, before(entry.line_of(i)));
}

}  // namespace

std::vector<Entry> open_sections(const std::vector<Entry>& entries) {
  std::vector<Entry> opened;
  for (const auto& entry : entries) {
    if (entry.shape != Shape::map) {
      opened.push_back(entry);
      continue;
    }
    for (std::size_t i = 0; i < entry.words.size(); ++i) {
      const auto& word = entry.words[i];
      const auto end = word.find('=');
      const auto value = word.substr(end + 1);
      opened.push_back({.key = entry.key + "." + word.substr(0, end),
                        .line = entry.line_of(i),
                        .words = value.empty() ? std::vector<std::string>{} : std::vector<std::string>{value}});
    }
  }
  return opened;
}

Layer read_settings(const std::vector<Entry>& entries, const std::string& file) {
  Layer layer;
  for (const auto& entry : entries) {
    const auto place = text::concat(file, ':', entry.line);
    const auto before = place + ": ";
    const auto& key = find_key(entry.key, before);
    if (layer.contains(entry.key))
      throw UsageError({.what = before + entry.key + " was said before", .hint = "keep one of them"});
    if (entry.words.empty()) continue;  // null, or an empty list: nothing is said
    check_shape(key, entry, before);
    check_words_of(key, entry, file);
    layer.emplace(entry.key, Given{entry.words, place});
  }
  return layer;
}

}  // namespace hortator::launching
