#include "models/tokenizer/regex/character_class.hpp"

#include <unicode/uset.h>

#include <map>
#include <memory>

#include "models/tokenizer/regex/letter_case.hpp"
#include "models/tokenizer/regex/notation.hpp"

namespace hortator::models {
namespace {

constexpr int max_class_depth = 50;  // of classes within classes

bool is_ascii_letter(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z' && c < 0x80; }
bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

/// Oniguruma's sets with POSIX names. [[:punct:]] has symbols as well, \p{Punct} has not.
std::optional<std::string> posix_set(const std::string& name) {
  static const std::map<std::string, std::string> sets = {{"alnum", "[\\p{Alphabetic}\\p{Nd}]"},
                                                          {"alpha", "[\\p{Alphabetic}]"},
                                                          {"ascii", "[\\x{0}-\\x{7F}]"},
                                                          {"blank", "[\\p{Zs}\\x{9}]"},
                                                          {"cntrl", "[\\p{Cc}]"},
                                                          {"digit", "[\\p{Nd}]"},
                                                          {"graph", "[^\\p{White_Space}\\p{Cc}\\p{Cn}\\p{Cs}]"},
                                                          {"lower", "[\\p{Lowercase}]"},
                                                          {"print", "[^\\p{Zl}\\p{Zp}\\p{Cc}\\p{Cn}\\p{Cs}]"},
                                                          {"punct", "[\\p{P}\\p{S}]"},
                                                          {"space", "[\\p{White_Space}]"},
                                                          {"upper", "[\\p{Uppercase}]"},
                                                          {"word", word_character},
                                                          {"xdigit", "[0-9A-Fa-f]"}};
  const auto found = sets.find(name);
  return found == sets.end() ? std::nullopt : std::optional(found->second);
}

std::string complement(const std::string& set) { return "[^" + set + "]"; }

bool is_known_to_icu(const std::string& set) {
  const std::u16string pattern(set.begin(), set.end());
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<USet, void (*)(USet*)> opened(
      uset_openPattern(pattern.data(), static_cast<std::int32_t>(pattern.size()), &error), uset_close);
  return U_SUCCESS(error) != 0;
}

/// \p{name} and \P{name}, after the brace. A name matches without regard to case, spaces, '-' and '_'.
std::string read_property(ExpressionReader& reader, bool is_negated) {
  if (reader.take(U"^")) is_negated = !is_negated;
  const auto written = reader.take_until(U'}');
  std::string name;
  for (const auto c : written) {
    if (c == ' ' || c == '-' || c == '_') continue;
    if (!is_ascii_letter(c) && !is_digit(c)) reader.refuse("names a property that is not a plain name");
    name.push_back(static_cast<char>(c < 'a' && is_ascii_letter(c) ? c + 32 : c));
  }
  auto set = name == "punct" ? std::nullopt : posix_set(name);
  if (!set) set = "[\\p{" + name + "}]";
  if (name.empty() || !is_known_to_icu(*set))
    reader.refuse(text::concat("names the property '", to_utf8(written), "', which is not supported"));
  return is_negated ? complement(*set) : *set;
}

int hexadecimal_digit(char32_t c) {
  if (is_digit(c)) return static_cast<int>(c - U'0');
  const auto lower = c | 0x20;
  return c < 0x80 && lower >= 'a' && lower <= 'f' ? static_cast<int>(lower - U'a') + 10 : -1;
}

/// A number of exactly, or at most, that many digits.
char32_t read_hexadecimal(ExpressionReader& reader, int min_digits, int max_digits) {
  char32_t value = 0;
  int digits = 0;
  for (; digits < max_digits && !reader.at_end() && hexadecimal_digit(reader.peek()) >= 0; ++digits)
    value = 16 * value + static_cast<char32_t>(hexadecimal_digit(reader.next()));
  const bool is_character = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
  if (digits < min_digits || !is_character) reader.refuse("has a number that is not that of a character");
  return value;
}

/// \x{41}, and \x41 up to \x7F: the others are bytes.
char32_t read_after_x(ExpressionReader& reader) {
  if (!reader.take(U"{")) {
    const auto value = read_hexadecimal(reader, 1, 2);
    if (value >= 0x80) reader.refuse("has a byte from \\x80 on");
    return value;
  }
  const auto value = read_hexadecimal(reader, 1, 6);
  if (!reader.take(U"}")) reader.refuse("has a number that is not that of a character");
  return value;
}

/// Reads a class, and those within it.
class ClassReader {
 public:
  explicit ClassReader(ExpressionReader& reader) : reader_(reader) {}

  struct Class {
    std::string set;  ///< without the negation
    bool is_negated = false;

    std::string whole() const { return is_negated ? complement(set) : set; }
  };

  /// A ']' that comes first stands for itself.
  Class read(int depth = 0) {
    if (depth > max_class_depth) reader_.refuse("has too many classes within classes");
    Class one{.set = "", .is_negated = reader_.take(U"^")};
    std::string operands, content;
    for (bool is_first = true; is_first || !reader_.take(U"]"); is_first = false) {
      if (!reader_.take(U"&&")) {
        content += element(depth);
        continue;
      }
      operands += operand(content) + "&&";
      content.clear();
      before_ = Before::nothing;
      has_intersection_ = true;
    }
    before_ = Before::range;  // for the class around this one
    one.set = operands.empty() ? operand(content) : "[" + operands + operand(content) + "]";
    return one;
  }

  /// Whether a class, or one within it, is an intersection.
  bool has_intersection() const { return has_intersection_; }

 private:
  /// What the last element was: a hyphen means different things after each.
  enum class Before { nothing, character, range, set };

  std::string operand(const std::string& content) const {
    if (content.empty()) reader_.refuse("has '&&' with nothing on one side");
    return "[" + content + "]";
  }

  std::string element(int depth) {
    if (reader_.is_next(U"[:")) {
      if (auto set = posix_bracket()) return *set;
    }
    if (reader_.take(U"[")) {
      before_ = Before::nothing;
      return read(depth + 1).whole();
    }
    const auto place = reader_.place();
    if (reader_.take(U"\\")) {
      if (auto set = read_escaped_set(reader_)) {
        before_ = Before::set;
        return *set;
      }
      reader_.go_back_to(place);
    }
    return character_or_range();
  }

  std::optional<std::string> posix_bracket() {
    const auto place = reader_.place();
    reader_.take(U"[:");
    const bool is_negated = reader_.take(U"^");
    std::string name;
    while (!reader_.at_end() && is_ascii_letter(reader_.peek())) name.push_back(static_cast<char>(reader_.next()));
    if (!reader_.take(U":]")) {
      reader_.go_back_to(place);
      return {};  // a class that begins with a colon
    }
    const auto set = posix_set(name);
    if (!set) reader_.refuse(text::concat("has the unknown class [:", name, ":]"));
    before_ = Before::set;
    return is_negated ? complement(*set) : *set;
  }

  std::string character_or_range() {
    if (before_ == Before::set && reader_.is_next(U"-") && !reader_.is_next(U"-]"))
      reader_.refuse("has '-' after a set");
    const auto first = character();
    const bool begins_range = reader_.is_next(U"-") && !reader_.is_next(U"-]");
    before_ = Before::character;
    if (!begins_range) return icu_character(first);
    reader_.take(U"-");
    if (reader_.is_next(U"[") || reader_.is_next(U"&&")) reader_.refuse("has a range without an end");
    const auto last = character();
    if (last < first) reader_.refuse("has a range whose end is before its beginning");
    before_ = Before::range;
    return icu_range(first, last);
  }

  char32_t character() {
    const auto c = reader_.next();
    if (c != U'\\') return c;
    if (reader_.take(U"b")) return U'\b';
    const auto place = reader_.place();
    if (read_escaped_set(reader_)) reader_.refuse("has a range to a set");
    reader_.go_back_to(place);
    return read_escaped_character(reader_);
  }

  ExpressionReader& reader_;
  Before before_ = Before::nothing;
  bool has_intersection_ = false;
};

}  // namespace

std::string read_class(ExpressionReader& reader, bool ignores_case) {
  ClassReader classes(reader);
  auto one = classes.read();
  if (!ignores_case) return one.whole();
  if (classes.has_intersection()) reader.refuse("has '&&' in a class that ignores case");
  const auto both = with_both_cases(one.set);
  if (!both) reader.refuse("ignores case in a class with a character that is equal to several, as the sharp s is");
  return one.is_negated ? complement(*both) : *both;
}

std::optional<std::string> read_escaped_set(ExpressionReader& reader) {
  static const std::map<char32_t, std::string> sets = {
      {U'w', word_character}, {U'd', "[\\p{Nd}]"}, {U's', "[\\p{White_Space}]"}, {U'h', "[0-9A-Fa-f]"}};
  const auto c = reader.peek();
  if (reader.take(U"p{")) return read_property(reader, false);
  if (reader.take(U"P{")) return read_property(reader, true);
  const auto found = is_ascii_letter(c) ? sets.find(c | 0x20) : sets.end();
  if (found == sets.end()) return {};
  reader.next();
  return c < U'a' ? complement(found->second) : found->second;
}

char32_t read_escaped_character(ExpressionReader& reader) {
  static const std::map<char32_t, char32_t> controls = {{U'a', 0x07},  {U'e', 0x1B},  {U'f', 0x0C}, {U'n', U'\n'},
                                                        {U'r', U'\r'}, {U't', U'\t'}, {U'v', 0x0B}};
  const auto c = reader.next();
  if (c == U'x') return read_after_x(reader);
  if (c == U'u') return read_hexadecimal(reader, 4, 4);
  if (const auto found = controls.find(c); found != controls.end()) return found->second;
  if (is_ascii_letter(c) || is_digit(c))
    reader.refuse(text::concat("has \\", std::string(1, static_cast<char>(c)), ", which is not supported"));
  return c;
}

}  // namespace hortator::models
