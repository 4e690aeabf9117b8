// Decoding: batches, ends, limits and random tokens.
#include <ATen/ATen.h>

#include <hortator/error.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <numeric>

#include "cases.hpp"
#include "models/generation/scores.hpp"
#include "models/generation/settings.hpp"
#include "support/catch.hpp"

using namespace hortator;
using models::Tokens;

namespace {

std::shared_ptr<models::PretrainedModel> causal_model() {
  for (const auto& one : test::model_cases())
    if (one.has("generate.tokens")) return models::from_pretrained(one.folder);
  FAIL("there is no case of a causal model");
  return nullptr;
}

const std::vector<Tokens> prompts = {{5, 6, 7}, {9}, {3, 11, 12, 20, 4}};
const auto endless = std::optional(std::vector<std::int64_t>{});
constexpr double never = -std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a batch of different lengths gives what each prompt alone gives") {
  const auto model = causal_model();
  for (const bool sample : {false, true}) {
    const models::GenerateOptions options{.max_new_tokens = 20, .sample = sample, .seed = 3, .eos_token_ids = endless};
    const auto together = models::generate(*model, prompts, options);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      auto alone = options;
      alone.prompt_numbers = {i};
      CHECK(models::generate(*model, {prompts[i]}, alone).front() == together[i]);
    }
  }
}

TEST_CASE("a text ends with an end token, and not before the minimum") {
  const auto model = causal_model();
  const auto whole = models::generate(*model, prompts, {.max_new_tokens = 12, .eos_token_ids = endless});
  const std::vector<std::int64_t> ends = {whole[0][4]};
  std::size_t steps = 0;
  const auto ended = models::generate(
      *model, prompts, {.max_new_tokens = 12, .eos_token_ids = ends, .on_tokens = [&](const auto& shown) {
                          CHECK(shown.size() == prompts.size());
                          ++steps;
                        }});
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    const auto end = std::find(whole[row].begin(), whole[row].end(), ends[0]);
    CHECK(ended[row] == Tokens(whole[row].begin(), end == whole[row].end() ? end : end + 1));
  }
  CHECK(steps <= 12);
  const auto late =
      models::generate(*model, prompts, {.max_new_tokens = 12, .min_new_tokens = 12, .eos_token_ids = ends});
  for (const auto& row : late) CHECK(row.size() == 12);
}

TEST_CASE("prompts that enter a batch later get the texts that each has alone") {
  const auto model = causal_model();
  std::vector<Tokens> many;
  for (std::int64_t i = 0; i < 9; ++i) {
    many.emplace_back();
    for (std::int64_t j = 0; j <= i * 5 % 7; ++j) many.back().push_back(3 + (i * 11 + j * 7) % 50);
  }
  for (const bool sample : {false, true}) {
    models::GenerateOptions options{.max_new_tokens = 30,
                                    .repetition_penalty = 1.2,
                                    .sample = sample,
                                    .seed = 5,
                                    .eos_token_ids = std::vector<std::int64_t>{7, 8, 15, 16, 23, 31, 42}};
    const auto together = models::generate(*model, many, options);
    for (const std::int64_t rows : {1, 2, 4, 100}) {
      options.max_batch_size = rows;
      std::size_t most = 0, tokens = 0;
      options.on_tokens = [&](const auto& shown) {
        CHECK(shown.size() == many.size());
        const auto active =
            static_cast<std::size_t>(std::ranges::count_if(shown, [](const auto& x) { return x.has_value(); }));
        most = std::max(most, active);
        tokens += active;
      };
      CHECK(models::generate(*model, many, options) == together);
      CHECK(most == std::min<std::size_t>(static_cast<std::size_t>(rows), many.size()));
      std::size_t expected = 0;
      for (const auto& text : together) expected += text.size();
      CHECK(tokens == expected);
    }
  }
}

TEST_CASE("a text ends where the caller says") {
  const auto model = causal_model();
  const auto whole = models::generate(*model, prompts, {.max_new_tokens = 12, .eos_token_ids = endless});
  const auto ended = models::generate(
      *model, prompts,
      {.max_new_tokens = 12, .eos_token_ids = endless, .ends = [](std::size_t prompt, const Tokens& text) {
         return text.size() == 3 + prompt;
       }});
  for (std::size_t row = 0; row < prompts.size(); ++row)
    CHECK(ended[row] == Tokens(whole[row].begin(), whole[row].begin() + 3 + static_cast<std::ptrdiff_t>(row)));
}

TEST_CASE("the model's mode is what it was, and wrong calls are errors") {
  const auto model = causal_model();
  model->train();
  models::generate(*model, prompts, {.max_new_tokens = 1});
  CHECK(model->is_training());
  CHECK_THROWS_WITH(models::generate(*model, {}), ContainsSubstring("no prompts"));
  CHECK_THROWS_WITH(models::generate(*model, {{1}, {}}), ContainsSubstring("Prompt 1 has no tokens"));
  CHECK_THROWS_WITH(models::generate(*model, {{1, 100'000}}), ContainsSubstring("token 100000"));
  CHECK_THROWS_WITH(models::generate(*model, prompts, {.temperature = 0}), ContainsSubstring("temperature"));
  CHECK_THROWS_WITH(models::generate(*model, prompts, {.top_p = 1.5}), ContainsSubstring("top_p"));
}

TEST_CASE("scores are restricted as in transformers") {
  const auto scores = at::tensor({1.0, 3.0, 2.0, 0.5}).view({1, 4});
  const auto kept = [&](const models::GenerateOptions& options) {
    return models::restricted(scores, models::with_defaults(options, {})).ne(never).to(at::kInt).view(-1);
  };
  CHECK(at::equal(kept({.top_k = 2}), at::tensor({0, 1, 1, 0})));
  CHECK(at::equal(kept({.top_k = 9}), at::tensor({1, 1, 1, 1})));
  // softmax: 0.082, 0.604, 0.222, 0.049
  CHECK(at::equal(kept({.top_p = 0.6}), at::tensor({0, 1, 0, 0})));
  CHECK(at::equal(kept({.top_p = 0.7}), at::tensor({0, 1, 1, 0})));
  CHECK(at::equal(kept({.top_p = 1e-6}), at::tensor({0, 1, 0, 0})));
  CHECK(at::equal(kept({.min_p = 0.1}), at::tensor({1, 1, 1, 0})));
  CHECK(at::equal(kept({.min_p = 0.5}), at::tensor({0, 1, 0, 0})));
  CHECK(at::allclose(models::restricted(scores, models::with_defaults({.temperature = 0.5}, {})), 2 * scores));
  const auto penalised =
      models::penalised(at::tensor({1.0, -1.0, 2.0}).view({1, 3}), at::tensor({0, 1, 1}, at::kLong).view({1, 3}), 2.0);
  CHECK(at::allclose(penalised, at::tensor({0.5, -2.0, 2.0}).view({1, 3})));
}

TEST_CASE("random tokens are as frequent as they are likely") {
  const auto probabilities = at::tensor({0.1, 0.0, 0.6, 0.3});
  constexpr std::int64_t draws = 20'000;
  std::vector<double> random;
  for (std::uint64_t i = 0; i < draws; ++i) random.push_back(models::uniform(7, i % 10, i / 10));
  const auto tokens = models::drawn(probabilities.log().expand({draws, 4}), at::tensor(random));
  const auto frequencies = at::bincount(tokens, {}, 4).to(at::kDouble) / static_cast<double>(draws);
  CHECK((frequencies - probabilities).abs().max().item<double>() < 0.015);
  CHECK(frequencies[1].item<double>() == 0);
}

TEST_CASE("a cache keeps what was appended, up to its capacity") {
  for (const std::int64_t capacity : {0, 200}) {
    models::KeyValueCache cache(capacity);
    const auto keys = at::randn({2, 3, 150, 4}), values = at::randn({2, 3, 150, 4});
    for (std::int64_t time = 0; time < 150; time += 50) {
      const auto [all_keys, all_values] = cache.append(0, keys.narrow(2, time, 50), values.narrow(2, time, 50));
      CHECK(at::equal(all_keys, keys.narrow(2, 0, time + 50)));
      CHECK(at::equal(all_values, values.narrow(2, 0, time + 50)));
    }
    CHECK(cache.time() == 150);
    cache.select(at::tensor({1, 1}));
    const auto [all_keys, all_values] = cache.append(0, keys.narrow(2, 0, 1), values.narrow(2, 0, 1));
    CHECK(at::equal(all_keys[0].narrow(1, 0, 150), keys[1]));
    if (capacity > 0) CHECK_THROWS_WITH(cache.append(0, keys, values), ContainsSubstring("room for 200 tokens"));
  }
}

TEST_CASE("caches of several batches become one, aligned at the last token") {
  const auto of = [](std::int64_t rows, std::int64_t time) { return at::randn({rows, 3, time, 4}); };
  const auto first = of(2, 5), second = of(1, 80), more = of(3, 1);
  models::KeyValueCache cache, other;
  cache.append(0, first, first);
  other.append(0, second, 2 * second);
  cache.append_rows(other);
  CHECK(cache.time() == 80);
  cache.forget(70);
  const auto [keys, values] = cache.append(0, more, more);
  CHECK(cache.time() == 11);
  CHECK(at::equal(keys.narrow(0, 0, 2).narrow(2, 5, 5), first));
  CHECK(at::equal(values[2].narrow(1, 0, 10), 2 * second[0].narrow(1, 70, 10)));
  CHECK(at::equal(keys.narrow(2, 10, 1), more));
  models::KeyValueCache limited(100);
  CHECK_THROWS_WITH(limited.append_rows(other), ContainsSubstring("without a capacity"));
}
