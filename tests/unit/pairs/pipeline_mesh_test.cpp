// Pipelines beside tensor, context and replicate ranks, for models of every family.
#include <ATen/ops/cross_entropy_loss.h>

#include <string_view>

#include "../accelerator/first_ranks.hpp"
#include "accelerator/training/training.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/tensor/tensor_models.hpp"

using namespace hortator;

namespace {

using Numbers = std::vector<double>;

int ranks() { return State().num_processes(); }

void check_near(const Numbers& found, const Numbers& expected, double tolerance = 1e-5) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) <= tolerance);
}

struct TokenBatch {
  at::Tensor ids, targets;
  auto fields() { return std::tie(ids, targets); }
};

/// Losses of a language model, whose batch the ranks along context divide.
Numbers language_losses(const std::string& family, const AcceleratorOptions& options, int steps = 6) {
  Accelerator accelerator(options);
  auto net = test::tensor_model(family);
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  const auto& data = accelerator::Training::of(accelerator).data();
  Numbers losses;
  for (int step = 0; step < steps; ++step) {
    const test::TokenRows rows(step, data.index(), data.size());
    TokenBatch batch{rows.ids.clone(), rows.targets.view_as(rows.ids).clone()};
    const auto divided = accelerator.maybe_context_parallel({{&batch.ids, 1}, {&batch.targets, 1}});
    const auto loss = accelerator.pipeline_step(model, batch, [](auto& model, TokenBatch& part) {
      const auto logits = model(models::ModelInputs{.input_ids = part.ids}).logits;
      const auto sum = at::cross_entropy_loss(logits.flatten(0, 1), part.targets.flatten(), {}, at::Reduction::Sum);
      return std::pair(sum, part.targets.numel());
    });
    losses.push_back(accelerator.reduce(loss, Reduce::mean).item<double>());
    accelerator.clip_grad_norm_(model.parameters(), 1.0);
    optimizer.step();
    optimizer.zero_grad();
  }
  return losses;
}

Numbers image_losses(const AcceleratorOptions& options) {
  Accelerator accelerator(options);
  auto net = test::tensor_model("vit");
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  const auto& data = accelerator::Training::of(accelerator).data();
  Numbers losses;
  for (int step = 0; step < 6; ++step) {
    const test::ImageRows rows(step, data.index(), data.size());
    const auto loss =
        accelerator.pipeline_step(model, std::pair(rows.pixels, rows.targets), [](auto& model, auto& part) {
          return at::cross_entropy_loss(model(models::ModelInputs{.pixel_values = part.first}).logits, part.second);
        });
    losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  return losses;
}

/// Losses on each mesh are those of one rank.
template <typename Losses>
void compare(const Losses& losses, const std::vector<ParallelConfig>& meshes, const ZeroConfig& zero = {}) {
  Numbers expected;
  {
    const test::FirstRanks first(1);
    if (first.is_in()) expected = losses(AcceleratorOptions{.communicator = first.handle()});
  }
  for (const auto& mesh : meshes) {
    INFO("pipeline " << mesh.pipeline.value_or(1) << ", tensor " << mesh.tensor.value_or(1) << ", context "
                     << mesh.context.value_or(1));
    const auto found = losses(AcceleratorOptions{.zero = zero, .parallel = mesh});
    if (!expected.empty()) check_near(found, expected);
  }
}

}  // namespace

TEST_CASE("models of every family train along a pipeline, with tensor and context ranks in each stage") {
  const auto halved = PipelineSchedule::zero_bubble;
  for (const auto* family : {"llama", "llama of 43 tokens", "qwen3", "gpt2", "bert", "distilbert", "mistral"}) {
    INFO(family);
    std::vector<ParallelConfig> meshes = {{.pipeline = 2}, {.pipeline = 2, .pipeline_schedule = halved}};
    if (ranks() == 4) {  // where `pipeline` alone has two replicas
      meshes.push_back({.tensor = 2, .pipeline = 2});
      meshes.push_back({.tensor = 2, .pipeline = 2, .pipeline_schedule = halved, .sequence = true});
      if (std::string_view(family).find("bert") == std::string_view::npos) {
        meshes.push_back({.context = 2, .pipeline = 2});
        meshes.push_back({.context = 2, .pipeline = 2, .pipeline_schedule = halved});
      }
    }
    compare([&](const auto& options) { return language_losses(family, options); }, meshes);
  }
  compare(image_losses, {{.pipeline = 2}, {.pipeline = 2, .pipeline_schedule = halved}});
}

TEST_CASE("after fifty steps models of three families have the losses of one rank", "[.][fifty_steps]") {
  using enum PipelineSchedule;
  for (const auto* family : {"llama", "gpt2", "bert"}) {
    INFO(family);
    std::vector<ParallelConfig> meshes;
    for (const auto schedule : {gpipe, one_f_one_b, zero_bubble}) {
      for (const int micro_batches : {1, 2, 4})
        meshes.push_back({.pipeline = 2, .pipeline_schedule = schedule, .micro_batches = micro_batches});
      if (ranks() == 4) meshes.push_back({.tensor = 2, .pipeline = 2, .pipeline_schedule = schedule});
    }
    compare([&](const auto& options) { return language_losses(family, options, 50); }, meshes);
  }
}

// What the ranks of an axis along which nothing else is divided have: replicas, or shards.
TEST_CASE("eight ranks along three axes, and shards of moments beside two, have the losses of one rank", "[.][eight]") {
  const auto halved = PipelineSchedule::zero_bubble;
  for (const auto* family : {"llama", "gpt2"}) {
    INFO(family);
    const auto losses = [&](const auto& options) { return language_losses(family, options); };
    const std::vector<ParallelConfig> meshes = {
        {.tensor = 2, .pipeline = 2},
        {.tensor = 2, .pipeline = 2, .pipeline_schedule = halved, .sequence = true},
        {.context = 2, .pipeline = 2},
        {.tensor = 2, .context = 2},
        {.tensor = 2, .context = 2, .pipeline = 2}};
    compare(losses, meshes);
    compare(losses, meshes, {.stage = 1});
  }
}

TEST_CASE("adapters of a language model train along a pipeline, and are summoned as a whole") {
  const auto losses = [](const AcceleratorOptions& options) {
    Accelerator accelerator(options);
    auto net = test::tensor_model("llama");
    set_seed(4);
    lora(net, {.rank = 2});
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-2));
    auto [model, optimizer] = accelerator.prepare(net, adam);
    Numbers found;
    for (int step = 0; step < 4; ++step) {
      const test::TokenRows rows(step, 0, 1);
      const TokenBatch batch{rows.ids, rows.targets.view_as(rows.ids)};
      found.push_back(accelerator
                          .pipeline_step(model, batch,
                                         [](auto& model, TokenBatch& part) {
                                           const auto logits = model(models::ModelInputs{.input_ids = part.ids}).logits;
                                           return at::cross_entropy_loss(logits.flatten(0, 1), part.targets.flatten());
                                         })
                          .template item<double>());
      optimizer.step();
      optimizer.zero_grad();
    }
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : net->parameters()) found.push_back(parameter.sum().template item<double>());
    return found;
  };
  for (const auto schedule : {PipelineSchedule::one_f_one_b, PipelineSchedule::zero_bubble}) {
    const auto found = losses({.parallel = {.pipeline = 2, .pipeline_schedule = schedule, .micro_batches = 2}});
    const test::FirstRanks first(1);
    if (first.is_in()) check_near(found, losses({.communicator = first.handle()}));
  }
}
