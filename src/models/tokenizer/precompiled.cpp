// SentencePiece's own normalization: a map of characters in the file, as a trie in a double array and the texts that
// they become.
#include <algorithm>
#include <array>
#include <optional>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "models/tokenizer/characters/character_clusters.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/parts.hpp"

namespace hortator::models {
namespace {

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr int bits_of_digit = 6, bits_of_byte = 8;
  std::string bytes;
  std::uint32_t pending = 0;
  int bits = 0;
  for (const auto c : text) {
    const auto value = digits.find(c);
    if (value == std::string_view::npos) return {};
    pending = (pending << bits_of_digit) | static_cast<std::uint32_t>(value);
    bits += bits_of_digit;
    if (bits < bits_of_byte) continue;
    bits -= bits_of_byte;
    bytes.push_back(static_cast<char>((pending >> bits) & 0xFF));
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

/// A node of the double array (Darts).
struct TrieUnit {
  std::uint32_t bits;

  bool has_value() const { return ((bits >> 8) & 1) != 0; }
  std::uint32_t value() const { return bits & 0x7FFFFFFF; }
  std::uint32_t label() const { return bits & 0x800000FF; }
  std::uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
};

/// Four bytes with the size of the trie, the trie, and texts that end with a zero byte.
class CharacterMap {
 public:
  static std::optional<CharacterMap> read(std::string_view bytes) {
    constexpr std::size_t unit = sizeof(std::uint32_t);
    if (bytes.size() < unit) return {};
    const std::size_t size = little_endian(bytes, 0);
    if (size % unit != 0 || size < unit || size > bytes.size() - unit) return {};
    CharacterMap map;
    for (std::size_t at = unit; at < unit + size; at += unit) map.trie_.push_back({little_endian(bytes, at)});
    map.texts_ = bytes.substr(unit + size);
    if (!core::is_utf8(map.texts_)) return {};
    return map;
  }

  /// What a part of a text becomes: the text of the shortest entry that it begins with, as Hugging Face tokenizers does
  /// it.
  std::optional<std::u32string> find(std::string_view part) const {
    std::size_t node = trie_.front().offset();
    for (const auto c : part) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= trie_.size() || trie_[node].label() != byte) return {};
      const auto unit = trie_[node];
      node ^= unit.offset();
      if (node >= trie_.size()) return {};
      if (unit.has_value()) return text_at(trie_[node].value());
    }
    return {};
  }

 private:
  std::u32string text_at(std::size_t begin) const {
    if (begin >= texts_.size()) return {};
    return code_points(std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin));
  }

  std::vector<TrieUnit> trie_;
  std::string texts_;
};

/// Adds characters that replace `count` others.
void add_replaced(std::vector<CharacterChange>& characters, const std::u32string& by, std::size_t count) {
  for (std::size_t i = 0; i < by.size(); ++i) characters.push_back({by[i], i < count ? 0 : 1});
  if (by.size() < count && !characters.empty()) characters.back().change -= static_cast<int>(count - by.size());
}

void normalize_by_map(AlignedText& text, const CharacterMap& map) {
  constexpr std::size_t longest = 5;  // bytes of a cluster that may be replaced as a whole
  std::vector<CharacterChange> characters;
  characters.reserve(text.size());
  const auto replace = [&](std::u32string_view part) {
    const auto found = map.find(to_utf8(part));
    if (found) add_replaced(characters, *found, part.size());
    return found.has_value();
  };
  bool has_changed = false;
  for (const auto& range : character_clusters(text.text())) {
    const auto cluster = std::u32string_view(text.text()).substr(range.begin, range.size());
    if (cluster.size() > 1 && utf8_size(cluster) <= longest && replace(cluster)) {
      has_changed = true;
      continue;
    }
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      if (replace(cluster.substr(i, 1))) {
        has_changed = true;
      } else {
        characters.push_back({cluster[i], 0});
      }
    }
  }
  if (has_changed) text.transform(characters);
}

}  // namespace

Normalizer make_precompiled(const ConfigFields& fields) {
  const auto bytes = from_base64(text_field(fields, "precompiled_charsmap"));
  const auto map = bytes ? CharacterMap::read(*bytes) : std::nullopt;
  fields.require(map.has_value(), "precompiled_charsmap", "expected a character map of SentencePiece in base64");
  return [map = *map](AlignedText& text) { normalize_by_map(text, map); };
}

}  // namespace hortator::models
