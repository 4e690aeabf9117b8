// Beam search, against the texts of Hugging Face transformers that beam_oracle.py has stored.
#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>
#include <nlohmann/json.hpp>

#include "cases.hpp"
#include "models/generation/beams.hpp"
#include "models/generation/settings.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using models::Beams;
using models::EarlyStopping;
using models::Tokens;
using nlohmann::json;

namespace {

EarlyStopping early_stopping_of(const json& value) {
  if (value.is_string()) return EarlyStopping::never;
  return value.get<bool>() ? EarlyStopping::yes : EarlyStopping::no;
}

models::GenerateOptions options_of(const json& options) {
  return {.max_new_tokens = options.at("max_new_tokens").get<std::int64_t>(),
          .min_new_tokens = options.at("min_new_tokens").get<std::int64_t>(),
          .repetition_penalty = options.at("repetition_penalty").get<double>(),
          .eos_token_ids = options.at("eos_token_id").get<std::vector<std::int64_t>>(),
          .num_beams = options.at("num_beams").get<std::int64_t>(),
          .num_return_sequences = options.at("num_return_sequences").get<std::int64_t>(),
          .length_penalty = options.at("length_penalty").get<double>(),
          .early_stopping = early_stopping_of(options.at("early_stopping"))};
}

std::vector<std::filesystem::path> folders_with_beams() {
  std::vector<std::filesystem::path> folders;
  for (const auto& one : test::model_cases())
    if (std::filesystem::exists(one.folder / "beams.json")) folders.push_back(one.folder);
  return folders;
}

Beams beams_of(const models::GenerateOptions& options, std::int64_t end) {
  return Beams(models::with_defaults(options, {}), [end](const Tokens& text) { return text.back() == end; });
}

constexpr std::int64_t end_token = 9;

}  // namespace

TEST_CASE("beam search gives the texts of transformers") {
  const auto folders = folders_with_beams();
  REQUIRE(!folders.empty());
  for (const auto& folder : folders) {
    INFO(folder.string());
    const auto model = models::from_pretrained(folder);
    for (const auto& one : json::parse(test::content_of(folder / "beams.json"))) {
      INFO(one.dump());
      const auto texts = models::generate(*model, one.at("prompts"), options_of(one.at("options")));
      CHECK(json(texts) == one.at("texts"));
    }
  }
}

TEST_CASE("beams of prompts of different lengths are those of each prompt alone") {
  const auto model = models::from_pretrained(folders_with_beams().front());
  const std::vector<Tokens> prompts = {{5, 6, 7}, {9}, {3, 11, 12, 20, 4}};
  for (const std::int64_t together : {0, 1, 2}) {
    models::GenerateOptions options{.max_new_tokens = 12,
                                    .eos_token_ids = std::vector<std::int64_t>{17, 23},
                                    .max_batch_size = together,
                                    .num_beams = 3,
                                    .num_return_sequences = 2};
    for (const bool often : {false, true}) {
      // Then most continuations end, and prompts have fewer beams that go on than num_beams.
      if (often) options.ends = [](std::size_t, const Tokens& text) { return text.back() % 4 != 0; };
      const auto all = models::generate(*model, prompts, options);
      REQUIRE(all.size() == 2 * prompts.size());
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const auto own = models::generate(*model, {prompts[i]}, options);
        CHECK(own[0] == all[2 * i]);
        CHECK(own[1] == all[2 * i + 1]);
      }
    }
  }
}

TEST_CASE("a beam that ends makes room only if it is among the best") {
  auto beams = beams_of({.max_new_tokens = 5, .num_beams = 2}, end_token);
  beams.advance({{-1, 0, 4}, {-2, 0, 5}, {-3, 0, end_token}, {-4, 0, 6}});
  CHECK(beams.finished().empty());
  REQUIRE(beams.running().size() == 2);
  beams.advance({{-2, 1, end_token}, {-3, 0, 7}, {-4, 0, end_token}, {-5, 1, 8}});
  REQUIRE(beams.finished().size() == 1);
  CHECK(beams.finished().front().text == Tokens{5, end_token});
  CHECK(beams.finished().front().score == -1);  // -2 over two tokens
  CHECK(beams.running()[0].text == Tokens{4, 7});
  CHECK(beams.running()[1].text == Tokens{5, 8});
  CHECK(!beams.is_over());
}

TEST_CASE("early stopping decides when beams that have ended suffice") {
  const auto after_two_ends = [](EarlyStopping stopping, float next) {
    auto beams = beams_of({.max_new_tokens = 9, .num_beams = 2, .early_stopping = stopping}, end_token);
    beams.advance({{-1, 0, end_token}, {-2, 0, end_token}, {next, 0, 4}, {next - 1, 0, 5}});
    return beams.is_over();
  };
  CHECK(after_two_ends(EarlyStopping::yes, -1.5F));
  CHECK(!after_two_ends(EarlyStopping::no, -1.5F));  // better than the worst of those that ended
  CHECK(after_two_ends(EarlyStopping::no, -3));
  CHECK(!after_two_ends(EarlyStopping::never, -3));  // -3 over nine tokens would be better
  CHECK(after_two_ends(EarlyStopping::never, -19));
}

TEST_CASE("options that do not fit beam search are errors") {
  const auto model = models::from_pretrained(folders_with_beams().front());
  const auto error = [&](const models::GenerateOptions& options) {
    try {
      models::generate(*model, {{5}}, options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(error({.num_beams = 0}), ContainsSubstring("num_beams: expected a number from 1"));
  CHECK_THAT(error({.num_return_sequences = 2}), ContainsSubstring("num_return_sequences"));
  CHECK_THAT(error({.sample = true, .num_beams = 2}), ContainsSubstring("sample was given with num_beams"));
  CHECK_THAT(error({.static_cache = true, .num_beams = 2}), ContainsSubstring("static_cache"));
  CHECK_THAT(error({.static_cache = true, .max_batch_size = 2}), ContainsSubstring("max_batch_size"));
  CHECK_THAT(error({.num_beams = 40}), ContainsSubstring("40 beams need 80 tokens"));
}
