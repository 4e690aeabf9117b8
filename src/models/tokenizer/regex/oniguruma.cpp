#include "models/tokenizer/regex/oniguruma.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/text/text.hpp"
#include "models/tokenizer/regex/character_class.hpp"
#include "models/tokenizer/regex/expression_reader.hpp"
#include "models/tokenizer/regex/letter_case.hpp"
#include "models/tokenizer/regex/notation.hpp"

namespace hortator::models {
namespace {

constexpr int max_group_depth = 100;              // of groups within groups
constexpr std::size_t max_repeat = 100'000;       // Oniguruma's
constexpr const char* not_newline = "[^\\x{A}]";  // only this character ends a line

/// Options that (?i) and (?m) set.
struct ExpressionOptions {
  bool ignores_case = false, dot_is_all = false;
};

/// A part of an expression, in ICU's notation.
struct Translated {
  std::string icu;
  bool may_be_empty = false;
};

/// What a quantifier may follow.
struct Atom {
  std::string icu;
  bool may_be_empty = false, may_repeat = true;
  std::optional<char32_t> in_any_case = {};  ///< if it is a character that ignores case
};

Atom anchor(const std::string& icu) { return {.icu = icu, .may_be_empty = true, .may_repeat = false}; }

/// What \w stands for outside of classes: Oniguruma looks characters up to U+00FF up in another table there.
std::string word_outside_classes() {
  return text::concat("[", word_character, "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}]");
}

/// A quantifier, and what it allows.
struct Quantifier {
  std::string icu;
  bool allows_none = false, is_endless = false, is_exact = false;
  bool counts = false;  ///< to two or more
  bool is_reluctant = false, is_possessive = false;
};

class Translation {
 public:
  explicit Translation(const std::string& expression) : reader_(expression) {}

  std::string run() {
    auto all = alternatives({});
    if (!reader_.at_end()) reader_.refuse("has ')' without '('");
    return all.icu;
  }

 private:
  Translated alternatives(const ExpressionOptions& options) {
    if (++depth_ > max_group_depth) reader_.refuse("has too many groups within groups");
    auto all = branch(options);
    while (reader_.take(U"|")) {
      const auto next = branch(options);
      all = {all.icu + "|" + next.icu, all.may_be_empty || next.may_be_empty};
    }
    --depth_;
    return all;
  }

  Translated branch(const ExpressionOptions& options) {
    Translated all{.icu = "", .may_be_empty = true};
    std::optional<char32_t> before;
    while (!reader_.at_end() && !reader_.is_next(U"|") && !reader_.is_next(U")")) {
      auto changed = options;
      if (takes_options(changed, U')')) {  // to the end of the group
        const auto rest = alternatives(changed);
        return {all.icu + "(?:" + rest.icu + ")", all.may_be_empty && rest.may_be_empty};
      }
      if (skips_comment()) continue;
      const auto one = atom(options);
      if (before && one.in_any_case && may_be_one_character(*before, *one.in_any_case))
        reader_.refuse("ignores case in letters that are equal to one character, as 'st' is to U+FB06");
      const auto repeated = with_quantifiers(one);
      before = repeated.icu == one.icu ? one.in_any_case : std::nullopt;
      all = {all.icu + repeated.icu, all.may_be_empty && repeated.may_be_empty};
    }
    return all;
  }

  bool skips_comment() {
    if (!reader_.take(U"(?#")) return false;
    reader_.take_until(U')');
    return true;
  }

  /// (?i) and (?m-i), or with the end ':' the beginning of (?i:...). Nothing is read if it is something else.
  bool takes_options(ExpressionOptions& options, char32_t end) {
    const auto place = reader_.place();
    auto changed = options;
    bool sets = true;
    for (bool is_there = reader_.take(U"(?"); is_there && !reader_.at_end();) {
      const auto c = reader_.next();
      if (c == end) {
        options = changed;
        return true;
      }
      if (c == U'-') {
        sets = false;
      } else if (c == U'i') {
        changed.ignores_case = sets;
      } else if (c == U'm') {
        changed.dot_is_all = sets;
      } else {
        break;
      }
    }
    reader_.go_back_to(place);
    return false;
  }

  Atom atom(const ExpressionOptions& options) {
    if (reader_.is_next(U"(")) return group(options);
    if (reader_.take(U"[")) return {read_class(reader_, options.ignores_case)};
    if (reader_.take(U".")) return {options.dot_is_all ? any_character : not_newline};
    if (reader_.take(U"^")) return anchor("(?:\\A|(?<=\\n)(?!\\z))");
    if (reader_.take(U"$")) return anchor("(?=\\n|\\z)");
    for (const auto* sign : {U"*", U"+", U"?"})
      if (reader_.is_next(sign)) reader_.refuse("has a quantifier with nothing before it");
    if (interval()) reader_.refuse("has a quantifier with nothing before it");
    if (reader_.take(U"\\")) return escape(options);
    return literal(reader_.next(), options);
  }

  Atom literal(char32_t c, const ExpressionOptions& options) const {
    if (!options.ignores_case) return {icu_character(c)};
    const auto both = with_both_cases("[" + icu_character(c) + "]");
    if (!both) reader_.refuse("ignores case in a character that is equal to several, as the sharp s is");
    return {.icu = *both, .in_any_case = c};
  }

  Atom group(const ExpressionOptions& options) {
    auto inner = options;
    if (takes_options(inner, U':')) return rest_of_group("(?:", inner);
    for (const auto& [begin, icu] :
         {std::pair(U"(?=", "(?="), std::pair(U"(?!", "(?!"), std::pair(U"(?<=", "(?<="), std::pair(U"(?<!", "(?<!")})
      if (reader_.take(begin)) return anchor(rest_of_group(icu, options).icu);
    if (reader_.take(U"(?>")) return rest_of_group("(?>", options);
    if (reader_.take(U"(?<")) {
      reader_.take_until(U'>');
    } else if (reader_.take(U"(?'")) {
      reader_.take_until(U'\'');
    } else if (reader_.is_next(U"(?") || reader_.is_next(U"(*")) {
      reader_.refuse("has a kind of group that is not supported: of options, i and m are");
    } else {
      reader_.take(U"(");
    }
    return rest_of_group("(?:", options);  // nothing refers to a group
  }

  Atom rest_of_group(const std::string& begin, const ExpressionOptions& options) {
    const auto all = alternatives(options);
    if (!reader_.take(U")")) reader_.refuse("has '(' without ')'");
    return {.icu = begin + all.icu + ")", .may_be_empty = all.may_be_empty};
  }

  Atom escape(const ExpressionOptions& options) {
    static const auto w = word_outside_classes();
    static const std::map<char32_t, Atom> known = {
        {U'A', anchor("\\A")},
        {U'z', anchor("\\z")},
        {U'Z', anchor("(?=\\n?\\z)")},
        {U'b', anchor("(?:(?<=" + w + ")(?!" + w + ")|(?<!" + w + ")(?=" + w + "))")},
        {U'B', anchor("(?:(?<=" + w + ")(?=" + w + ")|(?<!" + w + ")(?!" + w + "))")},
        {U'w', {.icu = w}},
        {U'W', {.icu = "[^" + w + "]"}},
        {U'N', {.icu = not_newline}},
        {U'O', {.icu = any_character}}};
    if (const auto found = known.find(reader_.peek()); found != known.end()) {
      reader_.next();
      return found->second;
    }
    if (const auto set = read_escaped_set(reader_)) return {.icu = *set};
    return literal(read_escaped_character(reader_), options);
  }

  /// {n}, {n,}, {,m} or {n,m}. Another brace stands for itself, and nothing is read.
  std::optional<Quantifier> interval() {
    const auto place = reader_.place();
    if (!reader_.take(U"{")) return {};
    const auto low = number();
    const bool has_comma = reader_.take(U",");
    const auto high = has_comma ? number() : low;
    if ((!low && !high) || !reader_.take(U"}")) {
      reader_.go_back_to(place);
      return {};
    }
    if (low.value_or(0) > max_repeat || high.value_or(0) > max_repeat) reader_.refuse("repeats too often");
    if (low && high && *low > *high) reader_.refuse("has a quantifier whose end is before its beginning");
    const auto from = std::to_string(low.value_or(0)), to = high ? std::to_string(*high) : "";
    return Quantifier{.icu = has_comma ? "{" + from + "," + to + "}" : "{" + from + "}",
                      .allows_none = low.value_or(0) == 0,
                      .is_endless = !high,
                      .is_exact = !has_comma,
                      .counts = !high || *high > 1};
  }

  std::optional<std::size_t> number() {
    std::optional<std::size_t> value;
    while (!reader_.at_end() && reader_.peek() >= U'0' && reader_.peek() <= U'9') {
      const auto digit = static_cast<std::size_t>(reader_.next() - U'0');
      value = std::min(10 * value.value_or(0) + digit, max_repeat + 1);
    }
    return value;
  }

  /// The next quantifier. '+' behind an interval is a quantifier of its own, and so is '?' behind {n}.
  std::optional<Quantifier> quantifier() {
    auto one = interval();
    if (one) {
      one->is_reluctant = !one->is_exact && reader_.take(U"?");
      return one;
    }
    if (reader_.take(U"*")) {
      one = Quantifier{.icu = "*", .allows_none = true, .is_endless = true};
    } else if (reader_.take(U"+")) {
      one = Quantifier{.icu = "+", .is_endless = true};
    } else if (reader_.take(U"?")) {
      one = Quantifier{.icu = "?", .allows_none = true};
    } else {
      return {};
    }
    one->is_reluctant = reader_.take(U"?");
    one->is_possessive = !one->is_reluctant && reader_.take(U"+");
    return one;
  }

  Translated with_quantifiers(const Atom& one) {
    Translated all{.icu = one.icu, .may_be_empty = one.may_be_empty};
    bool is_repeated = false;
    while (const auto next = quantifier()) {
      if (!one.may_repeat) reader_.refuse("has a quantifier after an anchor or a group that looks around");
      if (next->is_reluctant && next->is_endless && all.may_be_empty)
        reader_.refuse("repeats reluctantly what may be empty, which ICU would do for ever");
      if (next->counts && all.may_be_empty) reader_.refuse("counts what may be empty, which Oniguruma stops repeating");
      if (is_repeated) all.icu = "(?:" + all.icu + ")";
      all.icu += next->icu + (next->is_reluctant ? "?" : "");
      if (next->is_possessive) all.icu = "(?>" + all.icu + ")";  // ICU's own would not end where nothing is matched
      all.may_be_empty = all.may_be_empty || next->allows_none;
      is_repeated = true;
    }
    return all;
  }

  ExpressionReader reader_;
  int depth_ = 0;
};

}  // namespace

std::string icu_expression(const std::string& oniguruma) { return Translation(oniguruma).run(); }

}  // namespace hortator::models
