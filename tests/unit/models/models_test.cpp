// Models against Hugging Face transformers and torchvision, on stored cases that oracle.py wrote.
#include "cases.hpp"

#include <hortator/models/generate.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using test::ModelCase;

namespace {

constexpr double logit_tolerance = 1e-4;     // absolute
constexpr double gradient_tolerance = 1e-4;  // relative to the norm

void check_outputs(const ModelCase& one, const models::ModelOutputs& outputs) {
  std::size_t compared = 0;
  for (const auto& [name, value] : test::outputs_by_name(outputs)) {
    const auto expected = one.get("output." + name);
    if (!expected.defined()) continue;
    INFO(name);
    REQUIRE(value.defined());
    REQUIRE(value.sizes() == expected.sizes());
    CHECK(((value - expected) * one.counted(expected)).abs().max().item<double>() < logit_tolerance);
    ++compared;
  }
  CHECK(compared > 0);
}

void check_gradients(const ModelCase& one, const models::PretrainedModel& model, const models::ModelOutputs& outputs) {
  auto loss = at::zeros({});
  for (const auto& [name, value] : test::outputs_by_name(outputs))
    if (one.has("cotangent." + name)) loss = loss + (value * one.get("cotangent." + name)).sum();
  loss.backward();
  double largest = 0;
  for (const auto& name : one.file.names())
    if (name.starts_with("gradient.")) largest = std::max(largest, one.get(name).norm().item<double>());
  for (const auto& parameter : model.named_parameters()) {
    const auto expected = one.get("gradient." + parameter.key());
    if (!expected.defined()) continue;
    INFO(parameter.key());
    REQUIRE(parameter.value().grad().defined());
    // Gradients that are zero but for rounding are compared with the largest one.
    const auto scale = std::max(expected.norm().item<double>(), 1e-2 * largest);
    CHECK((parameter.value().grad() - expected).norm().item<double>() < gradient_tolerance * scale);
  }
}

std::vector<models::Tokens> rows_of(const at::Tensor& ids, const at::Tensor& mask) {
  std::vector<models::Tokens> rows(static_cast<std::size_t>(ids.size(0)));
  for (std::int64_t row = 0; row < ids.size(0); ++row)
    for (std::int64_t i = 0; i < ids.size(1); ++i)
      if (!mask.defined() || mask[row][i].item<bool>())
        rows[static_cast<std::size_t>(row)].push_back(ids[row][i].item<std::int64_t>());
  return rows;
}

}  // namespace

TEST_CASE("models compute the outputs and gradients of transformers") {
  const auto cases = test::model_cases();
  REQUIRE(!cases.empty());
  for (const auto& one : cases) {
    INFO(one.folder.string());
    const auto model = models::from_pretrained(one.folder);
    const auto outputs = model->forward(one.inputs());
    check_outputs(one, outputs);
    check_gradients(one, *model, outputs);
  }
}

TEST_CASE("greedy decoding gives the tokens of transformers, with a growing and a static cache") {
  std::size_t compared = 0;
  for (const auto& one : test::model_cases()) {
    if (!one.has("generate.tokens")) continue;
    INFO(one.folder.string());
    const auto expected = rows_of(one.get("generate.tokens"), {});
    const auto model = models::from_pretrained(one.folder);
    const auto prompts = rows_of(one.get("generate.input_ids"), one.get("generate.attention_mask"));
    for (const bool is_static : {false, true}) {
      const auto tokens = models::generate(
          *model, prompts,
          {.max_new_tokens = 64, .eos_token_ids = std::vector<std::int64_t>{}, .static_cache = is_static});
      CHECK(tokens == expected);
    }
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("a saved model is loaded again, also from several files") {
  for (const auto& one : test::model_cases()) {
    INFO(one.folder.string());
    const auto model = models::from_pretrained(one.folder);
    for (const auto* max_shard_size : {"10GB", "2KB"}) {
      const test::OwnFolder folder("saved-model");
      models::save_pretrained(*model, folder.path, {.max_shard_size = max_shard_size});
      const auto again = models::from_pretrained(folder.path);
      CHECK(again->config().json == model->config().json);
      const auto expected = model->named_parameters();
      for (const auto& parameter : again->named_parameters()) {
        INFO(parameter.key());
        CHECK(at::equal(parameter.value(), expected[parameter.key()]));
      }
    }
  }
}
