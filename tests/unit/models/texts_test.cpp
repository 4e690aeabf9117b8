// Texts that a model and a tokenizer continue together.
#include <ATen/ATen.h>

#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/generate_texts.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

/// A tokenizer whose tokens are single characters, one for each id of the models in the cases.
models::Tokenizer letter_tokenizer() {
  auto vocabulary = json::object();
  for (int id = 0; id < 61; ++id) vocabulary[std::string(1, static_cast<char>('0' + id))] = id;
  const json file = {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}},
                     {"decoder", {{"type", "Fuse"}}}};
  const test::OwnFolder folder("letters");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "tokenizer.json") << file;
  return models::Tokenizer(folder.path);
}

std::shared_ptr<models::PretrainedModel> model_for_texts() {
  for (const auto& one : test::model_cases())
    if (one.has("generate.tokens")) return models::from_pretrained(one.folder);
  FAIL("there is no case of a causal model");
  return nullptr;
}

const std::vector<std::string> beginnings = {"567", "9", "3;<D4"};
const models::GenerateOptions long_texts = {
    .max_new_tokens = 25, .repetition_penalty = 1.5, .eos_token_ids = std::vector<std::int64_t>{}};

}  // namespace

TEST_CASE("texts are those of the tokens, and come as they are made") {
  const auto model = model_for_texts();
  const auto tokenizer = letter_tokenizer();
  std::vector<models::Tokens> tokens;
  for (const auto& prompt : beginnings) tokens.push_back(tokenizer.encode(prompt).ids);
  const auto expected = models::generate(*model, tokens, long_texts);
  std::vector<std::string> shown(beginnings.size());
  const auto texts = models::generate_texts(
      *model, tokenizer, beginnings,
      {.generation = long_texts, .on_text = [&](std::size_t prompt, std::string_view more) { shown[prompt] += more; }});
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    CHECK(texts[i] == tokenizer.decode(expected[i]));
    CHECK(shown[i] == texts[i]);
  }
}

TEST_CASE("bytes that are not UTF-8 become what decode makes of all tokens") {
  auto vocabulary = json::object();
  for (int id = 0; id < 30; ++id) vocabulary[std::string(1, static_cast<char>('0' + id))] = id;
  for (int id = 30; id < 61; ++id)  // letters, and bytes that only continue a character
    vocabulary[text::print("<0x%02X>", id % 2 == 0 ? 0x41 + id - 30 : 0x80 + id - 30)] = id;
  REQUIRE(vocabulary.size() == 61);
  const json decoders = json::array({{{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  const json file = {{"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}},
                     {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}}};
  const test::OwnFolder folder("bytes");
  std::filesystem::create_directories(folder.path);
  std::ofstream(folder.path / "tokenizer.json") << file;
  const models::Tokenizer tokenizer(folder.path);
  const auto model = model_for_texts();
  auto options = long_texts;
  options.sample = true, options.temperature = 5.0;
  std::vector<models::Tokens> prompts;
  for (const auto& prompt : beginnings) prompts.push_back(tokenizer.encode(prompt).ids);
  const auto tokens = models::generate(*model, prompts, options);
  std::vector<std::string> shown(beginnings.size());
  const auto texts = models::generate_texts(
      *model, tokenizer, beginnings,
      {.generation = options, .on_text = [&](std::size_t prompt, std::string_view more) { shown[prompt] += more; }});
  for (std::size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == tokenizer.decode(tokens[i]));
  CHECK(shown != texts);  // else no character came before a wrong byte, and this tests nothing
}

TEST_CASE("a text ends with the first stop string") {
  const auto model = model_for_texts();
  const auto tokenizer = letter_tokenizer();
  const auto whole = models::generate_texts(*model, tokenizer, beginnings, {.generation = long_texts});
  const auto stop = whole[0].substr(7, 2);
  for (const std::int64_t beams : {1, 3}) {
    auto generation = long_texts;
    generation.num_beams = beams;
    const auto ended =
        models::generate_texts(*model, tokenizer, beginnings, {.generation = generation, .stop_strings = {"no", stop}});
    for (std::size_t i = 0; i < beginnings.size(); ++i) {
      INFO(ended[i] << " of " << whole[i]);
      const auto at = ended[i].find(stop);
      CHECK((at == std::string::npos || at + stop.size() == ended[i].size()));
      const auto in_whole = whole[i].find(stop);
      if (beams == 1)
        CHECK(ended[i] == whole[i].substr(0, in_whole == std::string::npos ? in_whole : in_whole + stop.size()));
    }
    if (beams == 1) CHECK(ended[0].size() <= 9);
  }
}

TEST_CASE("wrong options for texts are errors") {
  const auto model = model_for_texts();
  CHECK_THROWS_WITH(models::generate_texts(*model, letter_tokenizer(), beginnings, {.stop_strings = {""}}),
                    ContainsSubstring("stop_strings has an empty string"));
  auto generation = long_texts;
  generation.num_beams = 2;
  CHECK_THROWS_WITH(models::generate_texts(*model, letter_tokenizer(), beginnings,
                                           {.generation = generation, .on_text = [](std::size_t, std::string_view) {}}),
                    ContainsSubstring("on_text was given with num_beams"));
}
