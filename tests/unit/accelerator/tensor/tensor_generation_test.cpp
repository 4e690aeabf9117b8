// Text of models that are divided among ranks, against the same model on one rank.
#include <hortator/models/generate.hpp>
#include <hortator/models/key_value_cache.hpp>
#include <hortator/training/answers.hpp>
#include <string>
#include <vector>

#include "parallel/tensor/divided_tensor.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/tensor/tensor_models.hpp"

using namespace hortator;
using models::Tokens;

namespace {

const std::vector<Tokens> prompts = {{5, 6, 7}, {9}, {3, 11, 12, 20, 4}, {1, 2}};

/// More tokens than a cache has room for at first, if the model has that many positions.
std::vector<models::GenerateOptions> ways(const models::ModelConfig& config) {
  const auto endless = std::optional(std::vector<std::int64_t>{});
  const models::GenerateOptions greedy{.max_new_tokens = 20, .eos_token_ids = endless};
  auto sampled = greedy, with_room = greedy, in_turn = greedy, penalised = greedy, beams = greedy;
  sampled.sample = true, sampled.temperature = 2, sampled.top_p = 0.9, sampled.seed = 5;
  with_room.static_cache = true;
  in_turn.max_batch_size = 2, in_turn.eos_token_ids = std::vector<std::int64_t>{7, 8, 15, 16, 23, 31};
  penalised.repetition_penalty = 1.3, penalised.min_new_tokens = 20;
  beams.num_beams = 3, beams.num_return_sequences = 2;
  std::vector<models::GenerateOptions> all = {greedy, sampled, with_room, in_turn, penalised, beams};
  if (!config.has_learned_positions) all.push_back({.max_new_tokens = 70, .eos_token_ids = endless});
  return all;
}

auto divide(Accelerator& accelerator, const std::string& family) {
  return accelerator.prepare_model(test::tensor_model(family), {.evaluation_mode = true});
}

/// Parallel.tensor over all ranks, where an operator that would be gathered is an error.
AcceleratorOptions divided_strictly(const State& state) {
  return {.parallel = {.tensor = state.num_processes(), .strict = true}};
}

}  // namespace

TEST_CASE("a divided model generates the tokens of a whole one, and gathers only the scores") {
  const State state;
  for (const auto& family : {"llama", "llama of 43 tokens", "qwen3", "qwen2", "mistral", "gpt2"}) {
    const auto whole = test::tensor_model(family);
    Accelerator accelerator(divided_strictly(state));
    auto model = divide(accelerator, family);
    for (const auto& options : ways(whole->config())) {
      INFO(family << ", sample " << options.sample.value_or(false) << ", beams " << options.num_beams.value_or(1)
                  << ", batch " << options.max_batch_size);
      CHECK(models::generate(model.module(), prompts, options) == models::generate(*whole, prompts, options));
    }
  }
}

TEST_CASE("a cache keeps this rank's heads of divided keys and values") {
  const State state;
  const auto ranks = state.num_processes();
  Accelerator accelerator(divided_strictly(state));
  auto model = divide(accelerator, "gpt2");
  const at::NoGradGuard no_grad;
  const auto fill = [&](models::KeyValueCache& cache, std::int64_t tokens) {
    model.module().forward({.input_ids = at::ones({2, tokens}, at::kLong), .cache = &cache});
  };
  models::KeyValueCache cache, other;
  fill(cache, 40);
  fill(other, 3);
  cache.append_rows(other);
  cache.select(at::tensor({0, 3}));
  cache.forget(10);
  CHECK(cache.time() == 30);
  const auto some = at::zeros({2, 4, 1, 8});
  for (auto* one : {&cache, &other}) {
    const auto [keys, values] = one->append(0, some, some);
    for (const auto& all : {keys, values}) {
      CHECK(all.size(1) == 4);
      CHECK(parallel::is_divided(all) == (ranks > 1));
      CHECK(parallel::operand_of(all).tensor.size(1) == 4 / ranks);
    }
  }
}

TEST_CASE("ranks of a divided model answer the same prompts, and an error is thrown as it is") {
  const State state;
  Accelerator accelerator({.parallel = {.tensor = state.num_processes()}});
  const std::vector<std::string> texts = {"a", "bb", "ccc"};
  std::size_t seen = 0;
  const auto answers = answer_prompts(accelerator, texts, [&](const std::vector<std::string>& batch) {
    seen += batch.size();
    return batch;
  });
  CHECK(answers == texts);
  CHECK(seen == texts.size());
  if (state.num_processes() == 1) return;
  const auto refuse = [](const std::vector<std::string>& batch) -> std::vector<std::string> {
    throw UsageError({.what = "the prompt " + batch.front() + " is refused"});
  };
  CHECK_THROWS_WITH(answer_prompts(accelerator, texts, refuse), "the prompt ccc is refused");
}
