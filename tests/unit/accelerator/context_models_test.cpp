// The library's models over divided sequences, each with the mask of its family, against whole sequences on one rank.
#include <torch/utils.h>

#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

const std::filesystem::path cases = HORTATOR_MODEL_CASES;

struct Result {
  at::Tensor states;
  std::vector<at::Tensor> gradients;
};

at::Tensor loss_of(const at::Tensor& states, const at::Tensor& weights) { return (states.sin() * weights).sum(); }

std::vector<at::Tensor> gradients_of(const models::PretrainedModel& model) {
  std::vector<at::Tensor> gradients;
  for (const auto& parameter : model.parameters())
    gradients.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::zeros_like(parameter));
  return gradients;
}

struct Sample {
  at::Tensor ids;
  at::Tensor mask;     ///< undefined: none
  at::Tensor weights;  ///< of the loss
};

at::Tensor states_of(models::PretrainedModel& model, const Sample& sample) {
  const auto outputs = model.forward({.input_ids = sample.ids, .attention_mask = sample.mask});
  return outputs.last_hidden_state.defined() ? outputs.last_hidden_state : outputs.logits;
}

void compare(Accelerator& accelerator, const std::string& folder, const std::string& architecture, bool pads) {
  INFO(folder);
  set_seed(3);
  const auto model = models::from_config(cases / folder, {.architecture = architecture});
  model->eval();
  constexpr std::int64_t length = 16;
  Sample whole{.ids = at::arange(2 * length).mul(7).remainder(50).add(5).view({2, length})};
  if (pads) whole.mask = at::arange(length).lt(at::tensor({length, length - 5}).view({2, 1})).to(at::kLong);
  const auto expected_states = states_of(*model, whole);
  whole.weights = at::arange(expected_states.numel()).cos().view(expected_states.sizes());
  loss_of(expected_states, whole.weights).backward();
  const auto expected = gradients_of(*model);
  model->zero_grad();

  auto mine = whole;
  std::vector<SequenceBuffer> buffers = {{&mine.ids, 1}, {&mine.weights, 1}};
  if (pads) buffers.push_back({&mine.mask, 1});
  const auto divided = accelerator.maybe_context_parallel(buffers);
  const auto states = states_of(*model, mine);
  CHECK(at::allclose(states, expected_states.index_select(1, divided.positions()), 1e-5, 1e-5));
  loss_of(states, mine.weights).backward();
  const auto gradients = gradients_of(*model);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    CHECK(at::allclose(accelerator.reduce(gradients[i]), expected[i], 1e-4, 2e-5));
}

}  // namespace

TEST_CASE("Llama's, GPT-2's and BERT's families compute what one rank computes: positions, windows and padding") {
  const State state;
  Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  compare(accelerator, "llama-0", "LlamaModel", false);
  compare(accelerator, "mistral-0", "MistralModel", false);
  compare(accelerator, "qwen3-0", "Qwen3Model", false);
  compare(accelerator, "gpt2-0", "GPT2Model", false);
  compare(accelerator, "bert-0", "BertModel", false);
  compare(accelerator, "bert-0", "BertModel", true);
  compare(accelerator, "distilbert-0", "DistilBertModel", true);
}

TEST_CASE("what a causal model cannot know of other ranks' tokens is refused") {
  const State state;
  if (state.num_processes() == 1) return;
  const Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  const auto model = models::from_config(cases / "llama-0", {.architecture = "LlamaModel"});
  auto ids = at::ones({1, 16}, at::kLong);
  const auto whole = ids;
  const auto divided = accelerator.maybe_context_parallel({{&ids, 1}});
  CHECK_THROWS_WITH(model->forward({.input_ids = ids, .attention_mask = at::ones_like(ids)}),
                    ContainsSubstring("attention_mask was passed to a causal model"));
  CHECK_THROWS_WITH(model->forward({.input_ids = whole}), ContainsSubstring("of a divided sequence"));
}
