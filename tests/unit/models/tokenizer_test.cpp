// Tokenizers against Hugging Face tokenizers, on stored texts that tokenizer_oracle.py wrote.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/tokenizer.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/tokenizer/characters/aligned_text.hpp"
#include "models/tokenizer/characters/character_clusters.hpp"
#include "models/tokenizer/characters/splitters.hpp"
#include "models/tokenizer/characters/unicode.hpp"
#include "models/tokenizer/regex/pattern.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

std::vector<std::filesystem::path> tokenizer_cases() {
  const auto* other = std::getenv("HORTATOR_TOKENIZER_CASES");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(other != nullptr ? other : TOKENIZER_CASES))
    folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

json offsets_of(const models::Encoding& encoding) {
  auto all = json::array();
  for (const auto& [begin, end] : encoding.offsets) all.push_back({begin, end});
  return all;
}

models::TextInput input_of(const json& one) {
  models::TextInput input{.text = one.at("text")};
  if (one.contains("pair")) input.pair = one.at("pair").get<std::string>();
  return input;
}

void check_case(const models::Tokenizer& tokenizer, const json& one) {
  if (one.contains("error")) {
    CHECK_THROWS_AS(tokenizer.encode(input_of(one), one.at("special").get<bool>()), UsageError);
    return;
  }
  const auto encoding = tokenizer.encode(input_of(one), one.at("special").get<bool>());
  CHECK(json(encoding.tokens) == one.at("tokens"));
  CHECK(json(encoding.ids) == one.at("ids"));
  CHECK(offsets_of(encoding) == one.at("offsets"));
  CHECK(json(encoding.type_ids) == one.at("type_ids"));
  CHECK(json(encoding.attention_mask) == one.at("attention_mask"));
  CHECK(json(encoding.special_tokens_mask) == one.at("special_tokens_mask"));
  const auto ids = one.at("decode").get<std::vector<std::int64_t>>();
  CHECK(tokenizer.decode(ids) == one.at("decoded").get<std::string>());
  CHECK(tokenizer.decode(ids, false) == one.at("decoded_all").get<std::string>());
}

models::Tokenizer tokenizer_of(const json& file) {
  const test::OwnFolder folder("tokenizer");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "tokenizer.json") << file;
  return models::Tokenizer(folder.path);
}

std::string error_of(const json& file) {
  try {
    const auto tokenizer = tokenizer_of(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const json small = {{"model",
                     {{"type", "BPE"},
                      {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
                      {"merges", json::array({json::array({"a", "b"})})}}}};

json changed(const std::string& path, const json& value) {
  auto file = small;
  file[json::json_pointer(path)] = value;
  return file;
}

}  // namespace

TEST_CASE("texts become the tokens of Hugging Face tokenizers, and text again", "[python]") {
  for (const auto& folder : tokenizer_cases()) {
    INFO(folder.string());
    const models::Tokenizer tokenizer(folder);
    const auto texts = json::parse(test::content_of(folder / "texts.json"));
    for (const auto& one : texts) {
      INFO(one.dump(-1, ' ', true));
      check_case(tokenizer, one);
    }
  }
}

TEST_CASE("a batch by several threads is what each text is") {
  const models::Tokenizer tokenizer(tokenizer_cases().front());
  std::vector<models::TextInput> inputs;
  for (int i = 0; i < 50; ++i) inputs.push_back({.text = "text number " + std::to_string(i * i)});
  const auto batch = tokenizer.encode_batch(inputs, true, 4);
  for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(batch[i].ids == tokenizer.encode(inputs[i].text).ids);
  inputs.push_back({.text = "\xFF"});
  CHECK_THROWS_AS(tokenizer.encode_batch(inputs, true, 4), UsageError);
}

TEST_CASE("text that is not UTF-8 is an error that names the byte") {
  const models::Tokenizer tokenizer(tokenizer_cases().front());
  for (const auto* bytes : {"ab\xFF", "ab\xC3", "ab\xC0\xAF", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80", "ab\x80"})
    CHECK_THROWS_WITH(tokenizer.encode(bytes), ContainsSubstring("at byte 2"));
}

TEST_CASE("an unsupported part of the file is named") {
  CHECK(error_of(small) == "no error");
  CHECK_THAT(error_of(changed("/normalizer", {{"type", "Nmt"}})), ContainsSubstring("'normalizer.type' is \"Nmt\""));
  CHECK_THAT(error_of(changed("/model/type", "WordLevel")), ContainsSubstring("'model.type'"));
  CHECK_THAT(error_of(changed("/model/dropout", 0.1)), ContainsSubstring("'model.dropout'"));
  CHECK_THAT(error_of(changed("/model/surprise", 1)), ContainsSubstring("'model.surprise'"));
  CHECK_THAT(error_of(changed("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}})),
             ContainsSubstring("'normalizer.precompiled_charsmap'"));
  CHECK_THAT(error_of(changed("/surprise", 1)), ContainsSubstring("'surprise'"));
  CHECK_THAT(error_of(changed("/model/merges", json::array({json::array({"a", "c"})}))),
             ContainsSubstring("'model.merges'"));
  CHECK_THAT(error_of(changed("/model/vocab", 3)), ContainsSubstring("'model.vocab'"));
  CHECK_THAT(error_of(changed("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Mystery"}}}}})),
             ContainsSubstring("'pre_tokenizer.pretokenizers[0].type'"));
  CHECK_THAT(
      error_of(changed("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}})),
      ContainsSubstring("regular expression"));
  const auto stripping = [](const char* content, int start) {
    return json{{"type", "Strip"}, {"content", content}, {"start", start}, {"stop", 0}};
  };
  CHECK(error_of(changed("/decoder", stripping("_", 1))) == "no error");
  CHECK_THAT(error_of(changed("/decoder", stripping("", 1))), ContainsSubstring("'decoder.content'"));
  CHECK_THAT(error_of(changed("/decoder", stripping("_", -1))), ContainsSubstring("'decoder.start'"));
  CHECK_THAT(error_of(json(3)), ContainsSubstring("not a valid JSON object"));
  CHECK_THROWS_WITH(models::Tokenizer("nowhere"), ContainsSubstring("Cannot read the tokenizer"));
}

TEST_CASE("where special tokens fill the maximum length, texts are left out whole") {
  const auto cut = [](const char* strategy, std::int64_t max_length, const models::TextInput& input) {
    auto file = small;
    file["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"a", 0}}, {"cls", {"b", 1}}};
    file["truncation"] = {{"direction", "Right"}, {"max_length", max_length}, {"strategy", strategy}, {"stride", 0}};
    return tokenizer_of(file).encode(input).ids;
  };
  using Ids = std::vector<std::int64_t>;
  for (const auto* strategy : {"LongestFirst", "OnlyFirst", "OnlySecond"}) {
    INFO(strategy);
    CHECK(cut(strategy, 2, {.text = "abab"}) == Ids{1, 0});
    CHECK(cut(strategy, 3, {.text = "abab", .pair = "ab"}) == Ids{1, 0, 0});
  }
  CHECK(cut("OnlyFirst", 5, {.text = "abab", .pair = "ab"}) == Ids{1, 2, 0, 2, 0});
}

TEST_CASE("a token of the vocabulary is shown as there, even if it is an added token that is normalized") {
  auto file = small;
  file["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"ab", 2}, {"_", 3}, {"x", 4}};
  file["normalizer"] = {{"type", "Prepend"}, {"prepend", "_"}};
  file["added_tokens"] = json::array({{{"id", 2}, {"content", "ab"}, {"normalized", true}, {"special", false}}});
  const auto tokenizer = tokenizer_of(file);
  using Texts = std::vector<std::string>;
  CHECK(tokenizer.encode("xab").tokens == Texts{"_", "x", "ab"});  // found by the model
  CHECK(tokenizer.encode("ab").tokens == Texts{"_ab"});            // found in the text
}

TEST_CASE("padding to a multiple of 0 is no padding to a multiple") {
  auto file = small;
  file["padding"] = {{"strategy", {{"Fixed", 3}}}, {"direction", "Right"}, {"pad_to_multiple_of", 0}, {"pad_id", 1},
                     {"pad_type_id", 0},           {"pad_token", "b"}};
  CHECK(tokenizer_of(file).encode("ab").ids == std::vector<std::int64_t>{2, 1, 1});
}

TEST_CASE("the splitters find what their regular expressions match") {
  const std::pair<const char*, std::vector<models::TextRange> (*)(const std::u32string&)> splitters[] = {
      {models::gpt2_expression, models::split_as_gpt2},
      {models::llama3_expression, [](const std::u32string& text) { return models::split_as_llama3(text, 3); }},
      {models::qwen2_expression, [](const std::u32string& text) { return models::split_as_llama3(text, 1); }}};
  const std::u32string alphabet =
      U"aZ\u00E9\u4E2D019\u0663'stTlLrReEvVmMdD\u017F.,!$ \t\n\r\u00A0\u3000\U0001F600\u0301";
  std::uint64_t state = 1;
  const auto random = [&](std::size_t count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state >> 33) % count);
  };
  for (const auto& [expression, split] : splitters) {
    const models::Pattern pattern(expression);
    for (int i = 0; i < 2000; ++i) {
      std::u32string text;
      for (auto left = random(16); left > 0; --left) text.push_back(alphabet[random(alphabet.size())]);
      INFO(models::to_utf8(text));
      const bool is_same = split(text) == pattern.matches(text);
      CHECK(is_same);
    }
  }
}

TEST_CASE("characters have the properties of Python's tables, whatever ICU's release") {
  CHECK(models::is_word(0x200D));      // a joiner
  CHECK(models::is_letter(0x13460));   // of Unicode 16
  CHECK(models::is_number(0x1CCF0));   // of Unicode 16
  CHECK(!models::is_number(0x11DE0));  // of Unicode 17
  CHECK(models::is_numeral(0x11DE0));
  CHECK(models::lower_case(0x16EA1) == U"\U00016EBC");
  CHECK(models::is_mark(0x0903));
  CHECK(!models::is_nonspacing_mark(0x0903));  // a spacing mark
  CHECK(models::is_nonspacing_mark(0x0301));
}

TEST_CASE("clusters of characters are what a reader takes for one") {
  const auto sizes = [](const std::u32string& text) {
    std::vector<std::size_t> all;
    for (const auto& range : models::character_clusters(text)) all.push_back(range.size());
    return all;
  };
  using Sizes = std::vector<std::size_t>;
  CHECK(sizes(U"ae\u0301\u0323b") == Sizes{1, 3, 1});
  CHECK(sizes(U"\r\n\n\r") == Sizes{2, 1, 1});
  CHECK(sizes(U"\n\u0301") == Sizes{1, 1});
  CHECK(sizes(U"\u1112\u1161\u11AB\u1112") == Sizes{3, 1});
  CHECK(sizes(U"\u00A9\u200D\u00A9x") == Sizes{3, 1});
  CHECK(sizes(U"x\u200D\u00A9") == Sizes{2, 1});
}

TEST_CASE("Unigram without an unknown token refuses other characters") {
  const auto vocabulary = json::array({json::array({"a", -1.0}), json::array({"b", -2.0}), json::array({"ab", -2.5})});
  const auto file = json{{"model", {{"type", "Unigram"}, {"vocab", vocabulary}}}};
  const test::OwnFolder folder("unigram");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "tokenizer.json") << file;
  const models::Tokenizer tokenizer(folder.path);
  CHECK(tokenizer.encode("aab").ids == std::vector<std::int64_t>{0, 2});
  CHECK_THROWS_WITH(tokenizer.encode("ac"), ContainsSubstring("'c', which the tokenizer does not know"));
}

TEST_CASE("a changed text keeps the ranges of the original") {
  models::AlignedText text(U"a1234b");
  text.replace({{1, 5}}, U"xy");
  CHECK(text.text() == U"axyb");
  CHECK(text.original({1, 3}) == models::TextRange{4, 5});
  CHECK(text.original({3, 4}) == models::TextRange{5, 6});
  text.prepend(U"_");
  CHECK(text.original({0, 1}) == models::TextRange{0, 1});
}

TEST_CASE("a line of a megabyte is encoded") {
  const models::Tokenizer tokenizer(std::filesystem::path(TOKENIZER_CASES) / "gpt2");
  const std::string spaces(1 << 20, ' '), line(1 << 20, 'a');
  CHECK(tokenizer.decode(tokenizer.encode(spaces).ids) == spaces);
  CHECK(tokenizer.decode(tokenizer.encode(line).ids) == line);
}

// For tests/tools/tokenizer-speed.py: prints the seconds that all lines of a file take.
TEST_CASE("lines are encoded", "[.speed]") {
  const auto* folder = std::getenv("HORTATOR_SPEED_TOKENIZER");
  const auto* file = std::getenv("HORTATOR_SPEED_TEXT");
  REQUIRE(folder != nullptr);
  REQUIRE(file != nullptr);
  const auto tokenizer = models::Tokenizer(folder).without_limits();
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  const auto begin = std::chrono::steady_clock::now();
  std::size_t tokens = 0;
  for (const auto& line : lines) tokens += tokenizer.encode(line).ids.size();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << "tokens " << tokens << " seconds " << seconds.count() << '\n';
}
