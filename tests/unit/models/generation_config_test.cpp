// generation_config.json: what a call does not set comes from the checkpoint.
#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/pretrained.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "models/generation/settings.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using models::Tokens;
using nlohmann::json;

namespace {

/// A causal model of the cases whose folder has this generation_config.json.
std::shared_ptr<models::PretrainedModel> model_with(const json& generation) {
  for (const auto& one : test::model_cases()) {
    if (!one.has("generate.tokens")) continue;
    const test::OwnFolder folder("generation_config");
    std::filesystem::create_directories(folder.path);
    for (const auto* name : {"config.json", "model.safetensors"})
      std::filesystem::copy_file(one.folder / name, folder.path / name);
    std::ofstream(folder.path / "generation_config.json") << generation;
    return models::from_pretrained(folder.path);
  }
  FAIL("there is no case of a causal model");
  return nullptr;
}

const std::vector<Tokens> some_prompts = {{5, 6, 7}, {9}};

}  // namespace

TEST_CASE("texts end with the end tokens of generation_config.json") {
  const auto whole =
      models::generate(*model_with({{"eos_token_id", json::array()}}), some_prompts, {.max_new_tokens = 12});
  const auto end = whole[0][4];
  const auto ended = models::generate(*model_with({{"eos_token_id", {2, end}}}), some_prompts, {.max_new_tokens = 12});
  const auto first = std::find(whole[0].begin(), whole[0].end(), end);
  CHECK(ended[0] == Tokens(whole[0].begin(), first + 1));
  const auto model = model_with({{"do_sample", false}});  // without end tokens: those of config.json
  CHECK(*models::with_defaults({}, model->config()).eos_token_ids == model->config().eos_token_ids);
}

TEST_CASE("what a call sets comes before generation_config.json, which comes before the defaults") {
  const auto model = model_with({{"do_sample", true},
                                 {"temperature", 0.5},
                                 {"top_k", 7},
                                 {"top_p", 0.9},
                                 {"min_p", 0.1},
                                 {"repetition_penalty", 1.3},
                                 {"max_new_tokens", 5},
                                 {"num_return_sequences", 1},
                                 {"early_stopping", "never"}});
  const auto all = models::with_defaults({.temperature = 2.0, .top_k = 0}, model->config());
  CHECK(*all.sample);
  CHECK(*all.temperature == 2.0);
  CHECK(*all.top_k == 0);
  CHECK(*all.top_p == 0.9);
  CHECK(*all.min_p == 0.1);
  CHECK(*all.repetition_penalty == 1.3);
  CHECK(*all.max_new_tokens == 5);
  CHECK(*all.min_new_tokens == 0);
  CHECK(*all.num_beams == 1);
  CHECK(*all.early_stopping == models::EarlyStopping::never);
  CHECK(models::generate(*model, some_prompts).front().size() == 5);

  const auto greedy = models::with_defaults({.sample = false}, model->config());
  CHECK(!*greedy.sample);
  CHECK(*greedy.temperature == 1.0);  // not used, so not read
  const auto penalised = models::generate(*model, some_prompts, {.max_new_tokens = 40, .sample = false});
  CHECK(penalised !=
        models::generate(*model, some_prompts, {.max_new_tokens = 40, .repetition_penalty = 1.0, .sample = false}));
}

TEST_CASE("a wrong value in generation_config.json is named, and what is not applied is found") {
  CHECK_THROWS_WITH(models::generate(*model_with({{"do_sample", 3}}), some_prompts),
                    ContainsSubstring("generation_config.json: 'do_sample' is 3"));
  CHECK_THROWS_WITH(models::generate(*model_with({{"do_sample", true}, {"top_p", 1.5}}), some_prompts),
                    ContainsSubstring("top_p"));
  CHECK_THROWS_WITH(
      models::generate(*model_with({{"do_sample", true}}), some_prompts, {.num_beams = 2}),
      ContainsSubstring("sample was given with num_beams") && ContainsSubstring("generation_config.json"));
  CHECK_THROWS_WITH(model_with(json::array({1})), ContainsSubstring("not a valid JSON object"));
  const auto not_applied = [](const json& generation) {
    return models::not_applied({}, {.generation_json = generation.dump()});
  };
  using Names = std::vector<std::string>;
  CHECK(not_applied({{"no_repeat_ngram_size", 3}, {"eos_token_id", 2}}) == Names{"no_repeat_ngram_size (3)"});
  CHECK(not_applied({{"surprise", {1, 2}}, {"typical_p", 1.0}, {"min_length", 0}}) == Names{"surprise ([1,2])"});
  CHECK(
      not_applied({{"_from_model_config", true}, {"pad_token_id", 0}, {"use_cache", true}, {"penalty_alpha", nullptr}})
          .empty());
  CHECK(not_applied({{"max_length", 4096}}) == Names{"max_length (4096)"});
  CHECK(models::not_applied({.max_new_tokens = 3}, {.generation_json = R"({"max_length": 4096})"}).empty());
}

TEST_CASE("a saved model keeps its generation_config.json") {
  const auto model = model_with({{"eos_token_id", {2, 0}}, {"no_repeat_ngram_size", 3}});
  const test::OwnFolder folder("saved_generation_config");
  models::save_pretrained(*model, folder.path);
  const auto saved = json::parse(test::content_of(folder.path / "generation_config.json"));
  CHECK(saved == json{{"eos_token_id", {2, 0}}, {"no_repeat_ngram_size", 3}});
}
