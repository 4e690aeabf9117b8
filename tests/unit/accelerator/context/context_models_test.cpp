// The library's models over divided sequences, each with the mask of its family, against whole sequences on one rank.
#include <torch/utils.h>

#include <hortator/error.hpp>
#include <hortator/models/pretrained.hpp>
#include <vector>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

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
  at::Tensor mask = {};       ///< undefined: none
  at::Tensor documents = {};  ///< undefined: none
  at::Tensor weights = {};    ///< of the loss
};

at::Tensor states_of(models::PretrainedModel& model, const Sample& sample) {
  const auto outputs =
      model.forward({.input_ids = sample.ids, .attention_mask = sample.mask, .document_ids = sample.documents});
  return outputs.last_hidden_state.defined() ? outputs.last_hidden_state : outputs.logits;
}

void compare(Accelerator& accelerator, const std::string& folder, const std::string& architecture, bool pads,
             bool packs = false) {
  INFO(folder << ", padding " << pads << ", documents " << packs);
  set_seed(3);
  const auto model = models::from_config(cases / folder, {.architecture = architecture});
  model->eval();
  constexpr std::int64_t length = 16;
  Sample whole{.ids = at::arange(2 * length).mul(7).remainder(50).add(5).view({2, length})};
  if (pads) whole.mask = at::arange(length).lt(at::tensor({length, length - 5}).view({2, 1})).to(at::kLong);
  if (packs) whole.documents = at::arange(length).ge(at::tensor({5, 11}).view({2, 1})).to(at::kLong);
  const auto expected_states = states_of(*model, whole);
  whole.weights = at::arange(expected_states.numel()).cos().view(expected_states.sizes());
  loss_of(expected_states, whole.weights).backward();
  const auto expected = gradients_of(*model);
  model->zero_grad();

  auto mine = whole;
  std::vector<SequenceBuffer> buffers = {{&mine.ids, 1}, {&mine.weights, 1}};
  if (pads) buffers.push_back({&mine.mask, 1});
  if (packs) buffers.push_back({&mine.documents, 1});
  const auto divided = accelerator.maybe_context_parallel(buffers);
  const auto states = states_of(*model, mine);
  CHECK(at::allclose(states, expected_states.index_select(1, divided.positions()), 1e-5, 1e-5));
  loss_of(states, mine.weights).backward();
  const auto gradients = gradients_of(*model);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    CHECK(at::allclose(accelerator.reduce(gradients[i]), expected[i], 1e-4, 2e-5));
}

/// Classes of two texts; the second ends with five tokens of padding. Each rank has the same loss.
void compare_classes(Accelerator& accelerator, const std::string& folder, const std::string& architecture) {
  INFO(architecture);
  set_seed(3);
  const auto model = models::from_config(cases / folder, {.architecture = architecture, .num_labels = 3});
  model->eval();
  constexpr std::int64_t length = 16;
  auto ids = at::arange(2 * length).mul(7).remainder(50).add(5).view({2, length});
  ids[1].slice(0, length - 5).fill_(0);
  const auto labels = at::tensor({2, 1}, at::kLong);
  const auto expected_logits = model->forward({.input_ids = ids}).logits;
  at::cross_entropy_loss(expected_logits, labels).backward();
  const auto expected = gradients_of(*model);
  model->zero_grad();

  const auto divided = accelerator.maybe_context_parallel({{&ids, 1}});
  const auto logits = model->forward({.input_ids = ids}).logits;
  CHECK(at::allclose(logits, expected_logits, 1e-5, 1e-5));
  at::cross_entropy_loss(logits, labels).backward();
  const auto gradients = gradients_of(*model);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    CHECK(at::allclose(accelerator.reduce(gradients[i], Reduce::mean), expected[i], 1e-4, 2e-5));
}

}  // namespace

TEST_CASE("heads that read the first or the last token read those of the whole sequence") {
  const State state;
  Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  compare_classes(accelerator, "bert-0", "BertForSequenceClassification");
  compare_classes(accelerator, "distilbert-0", "DistilBertForSequenceClassification");
  compare_classes(accelerator, "llama-0", "LlamaForSequenceClassification");
  compare_classes(accelerator, "gpt2-0", "GPT2ForSequenceClassification");
}

TEST_CASE("Llama's, GPT-2's and BERT's families compute what one rank computes: positions, windows and padding") {
  const State state;
  Accelerator accelerator({.parallel = {.context = state.num_processes()}});
  compare(accelerator, "llama-0", "LlamaModel", false);
  compare(accelerator, "mistral-0", "MistralModel", false);
  compare(accelerator, "mistral-0", "MistralModel", true, true);
  compare(accelerator, "llama-0", "LlamaModel", true);
  compare(accelerator, "llama-0", "LlamaModel", false, true);
  compare(accelerator, "gpt2-0", "GPT2Model", true, true);
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
  CHECK_THROWS_WITH(model->forward({.input_ids = ids, .attention_mask = at::ones_like(whole)}),
                    ContainsSubstring("attention_mask has the shape"));
  CHECK_THROWS_WITH(model->forward({.input_ids = whole}), ContainsSubstring("of a divided sequence"));
  const auto scores = models::from_config(cases / "llama-0", {.architecture = "LlamaForCausalLM"});
  CHECK_THROWS_WITH(scores->forward({.input_ids = ids, .last = 1}), ContainsSubstring("ModelInputs::last was set"));
}
