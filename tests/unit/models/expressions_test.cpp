// Regular expressions against Oniguruma, on stored cases that expression_oracle.py wrote.
#include <cstdlib>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/regex/pattern.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

json matches_of(const models::Pattern& pattern, const std::string& text) {
  auto all = json::array();
  for (const auto& range : pattern.matches(models::code_points(text))) all.push_back({range.begin, range.end});
  return all;
}

std::string refusal_of(const std::string& expression) {
  try {
    const models::Pattern pattern(expression);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

/// The ids of a text whose pieces a Split with this expression makes: each piece is a word of its own.
std::vector<std::string> pieces_of(const std::string& expression, const std::string& text) {
  auto vocabulary = json::object({{"?", 0}});
  const json file = {
      {"model", {{"type", "WordPiece"}, {"unk_token", "?"}, {"vocab", vocabulary}}},
      {"pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}}}};
  const test::OwnFolder folder("pieces");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "tokenizer.json") << file;
  std::vector<std::string> pieces;
  for (const auto& [begin, end] : models::Tokenizer(folder.path).encode(text).offsets)
    pieces.push_back(models::to_utf8(models::code_points(text).substr(begin, end - begin)));
  return pieces;
}

}  // namespace

TEST_CASE("regular expressions match what Oniguruma matches", "[expressions]") {
  const auto* other = std::getenv("HORTATOR_EXPRESSION_CASES");
  const auto cases = json::parse(test::content_of(other != nullptr ? other : EXPRESSION_CASES));
  std::size_t refused = 0;
  for (const auto& one : cases) {
    const auto expression = one.at("expression").get<std::string>();
    INFO(expression);
    if (const auto refusal = refusal_of(expression); refusal != "none") {
      CHECK_THAT(refusal, ContainsSubstring("ignores case") || ContainsSubstring("what may be empty"));
      ++refused;
      continue;
    }
    const models::Pattern pattern(expression);
    for (const auto& [text, matches] : one.at("matches").items()) {
      INFO(json(text).dump(-1, ' ', true));
      CHECK(matches_of(pattern, text) == matches);
    }
  }
  CHECK(3 * refused < cases.size());
}

TEST_CASE("a splitter cuts where Oniguruma matches, also where a match is empty") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of("\\w+|[^\\w\\s]+", "\U0001F468\u200D\U0001F469") == Pieces{"\U0001F468\u200D\U0001F469"});
  CHECK(pieces_of("\\p{N}{1,3}+|\\D+", "1234567 x") == Pieces{"1234567", " x"});
  CHECK(pieces_of(".+", "a\u0085b\u2028c") == Pieces{"a\u0085b\u2028c"});
  CHECK(pieces_of("[[:punct:]]", "a</b") == Pieces{"a", "<", "/", "b"});
  CHECK(pieces_of("\\p{Punct}", "a</b") == Pieces{"a<", "/", "b"});
  CHECK(pieces_of("\\h+", "12 zz\t") == Pieces{"12", " zz\t"});
  CHECK(pieces_of("^b", "a\u2028b\nb") == Pieces{"a\u2028b\n", "b"});
  CHECK(pieces_of("(?=[A-Z])", "camelCaseWord") == Pieces{"camel", "Case", "Word"});
}

TEST_CASE("what ICU cannot compute as Oniguruma does is refused by name") {
  CHECK_THAT(refusal_of("(a)\\1"), ContainsSubstring("has \\1, which is not supported"));
  CHECK_THAT(refusal_of("(?<n>a)\\k<n>"), ContainsSubstring("has \\k"));
  CHECK_THAT(refusal_of("\\Ga"), ContainsSubstring("has \\G"));
  CHECK_THAT(refusal_of("\\X"), ContainsSubstring("has \\X"));
  CHECK_THAT(refusal_of("\\R+"), ContainsSubstring("has \\R"));
  CHECK_THAT(refusal_of("(?:a?)*?b"), ContainsSubstring("repeats reluctantly what may be empty"));
  CHECK_THAT(refusal_of("(?:\\Ba?){2}"), ContainsSubstring("counts what may be empty"));
  CHECK_THAT(refusal_of("(?s)."), ContainsSubstring("a kind of group that is not supported"));
  CHECK_THAT(refusal_of("(?~ab)"), ContainsSubstring("a kind of group"));
  CHECK_THAT(refusal_of("(?(a)b|c)"), ContainsSubstring("a kind of group"));
  CHECK_THAT(refusal_of("\\p{Script=Han}"), ContainsSubstring("names a property"));
  CHECK_THAT(refusal_of("\\p{NoSuchScript}"), ContainsSubstring("'NoSuchScript', which is not supported"));
  CHECK_THAT(refusal_of("[[:foo:]]"), ContainsSubstring("unknown class [:foo:]"));
  CHECK_THAT(refusal_of("[\\w-a]"), ContainsSubstring("'-' after a set"));
  CHECK_THAT(refusal_of("[z-a]"), ContainsSubstring("end is before its beginning"));
  CHECK_THAT(refusal_of("\\xE9"), ContainsSubstring("a byte from \\x80 on"));
  CHECK_THAT(refusal_of("(?i)strasse"), ContainsSubstring("equal to one character"));
  CHECK_THAT(refusal_of("(?i)[\u00DF]"), ContainsSubstring("equal to several"));
  CHECK_THAT(refusal_of("a(b"), ContainsSubstring("'(' without ')'"));
  CHECK_THAT(refusal_of("a)"), ContainsSubstring("')' without '('"));
  CHECK_THAT(refusal_of("[a"), ContainsSubstring("ends too early"));
  CHECK_THAT(refusal_of("*a"), ContainsSubstring("nothing before it"));
  CHECK_THAT(refusal_of("^*"), ContainsSubstring("after an anchor"));
  CHECK_THAT(refusal_of("(?<=a+)b"), ContainsSubstring("ICU cannot compute"));
  CHECK_THAT(refusal_of(std::string(1000, '(') + std::string(1000, ')')), ContainsSubstring("too many groups"));
}
