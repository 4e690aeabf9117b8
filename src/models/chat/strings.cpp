#include "models/chat/strings.hpp"

#include <algorithm>

#include "models/chat/value.hpp"

namespace hortator::models::chat {
namespace {

bool is_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// What Python takes for white space.
constexpr std::string_view white_characters[] = {
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

/// The bytes of the white character at the text's beginning, or its end; 0 if there is another one.
std::size_t white_at(std::string_view text, bool end) {
  for (const auto white : white_characters)
    if (end ? text.ends_with(white) : text.starts_with(white)) return white.size();
  return 0;
}

std::string_view without_white(std::string_view text, bool left, bool right) {
  for (auto bytes = white_at(text, false); left && bytes > 0; bytes = white_at(text, false)) text.remove_prefix(bytes);
  for (auto bytes = white_at(text, true); right && bytes > 0; bytes = white_at(text, true)) text.remove_suffix(bytes);
  return text;
}

std::vector<std::string> white_parts(const std::string& text, std::int64_t most) {
  std::vector<std::string> parts;
  for (auto rest = without_white(text, true, false); !rest.empty(); rest = without_white(rest, true, false)) {
    const bool takes_rest = most >= 0 && static_cast<std::int64_t>(parts.size()) == most;
    std::size_t end = 0;
    while (end < rest.size() && (takes_rest || white_at(rest.substr(end), false) == 0)) ++end;
    parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return parts;
}

}  // namespace

std::string stripped(const std::string& text, std::string_view removed, bool left, bool right) {
  if (removed == white_space) return std::string(without_white(text, left, right));
  if (std::ranges::any_of(removed, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }))
    fail("'strip' and 'trim' are supported for characters of ASCII only");
  const auto begin = left ? std::min(text.find_first_not_of(removed), text.size()) : 0;
  const auto last = right ? text.find_last_not_of(removed) : text.size() - 1;
  const auto end = text.empty() || last == std::string::npos ? 0 : last + 1;
  return begin < end ? text.substr(begin, end - begin) : "";
}

std::vector<std::string> parts_of(const std::string& text, const std::string& separator, std::int64_t most) {
  if (separator.empty()) return white_parts(text, most);
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const auto end = text.find(separator, begin);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string replaced(std::string text, const std::string& from, const std::string& to, std::int64_t most) {
  if (from.empty()) fail("'replace' an empty string is not supported");
  std::size_t at = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    at = text.find(from, at);
    if (at == std::string::npos) break;
    text.replace(at, from.size(), to);
    at += to.size();
    if (text.size() > max_text) fail("'replace' makes a text too long");
  }
  return text;
}

std::string in_case(std::string text, LetterCase letter_case) {
  bool begins_word = true;
  for (auto& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) fail("upper and lower case are supported for letters of ASCII only");
    const bool is_upper = letter_case == LetterCase::upper || (letter_case != LetterCase::lower && begins_word);
    c = is_upper ? upper(c) : lower(c);
    begins_word = letter_case == LetterCase::title && !is_letter(c);
  }
  return text;
}

}  // namespace hortator::models::chat
