#pragma once

#include <ATen/ops/cross_entropy_loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <hortator/nn/pipeline.hpp>
#include <string_view>

#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

/// A user's own module, its training along a pipeline, and that of one rank.
namespace hortator::test::pipelines {

inline constexpr std::int64_t vocabulary = 23, width = 8, length = 5, rows = 16;

/// A user's own module: an embedding that is also the head, and layers.
struct ChainImpl : torch::nn::Module, HasPipelineLayers {
  explicit ChainImpl(std::int64_t layers = 8, bool recomputes = false, bool is_tied = true)
      : recomputes(recomputes), is_tied(is_tied) {
    embed = register_module("embed", torch::nn::Embedding(vocabulary, width));
    this->layers = register_module("layers", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < layers; ++i) this->layers->push_back(torch::nn::Linear(width, width));
    norm = register_module("norm", torch::nn::BatchNorm1d(width));
    if (!is_tied) head = register_module("head", torch::nn::Linear(width, vocabulary));
  }
  std::vector<std::string> pipeline_layers() const override {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < layers->size(); ++i) names.push_back("layers." + std::to_string(i));
    return names;
  }
  std::vector<at::Tensor> used_after_layers() const override {
    return is_tied ? std::vector{embed->weight} : std::vector<at::Tensor>();
  }

  at::Tensor forward(const at::Tensor& ids) {
    PipelineLayers stage(layers->size());
    auto x = stage.enter([&] { return embed(ids); });
    for (const auto i : stage) {
      const auto layer = [this, i](const at::Tensor& in) {
        if (on_layer) on_layer(i);
        return in + at::dropout(at::tanh(layers[i]->as<torch::nn::Linear>()->forward(in)), dropout, is_training());
      };
      x = recomputes ? recompute(layer, x) : layer(x);
    }
    stage.leave(x);
    x = norm(x.flatten(0, 1)).view_as(x);
    return is_tied ? at::linear(x, embed->weight) : head(x);
  }

  bool recomputes, is_tied;
  double dropout = 0;
  std::function<void(std::size_t)> on_layer;
  torch::nn::Embedding embed = nullptr;
  torch::nn::ModuleList layers = nullptr;
  torch::nn::BatchNorm1d norm = nullptr;
  torch::nn::Linear head = nullptr;
};
TORCH_MODULE(Chain);

struct Words {
  at::Tensor ids, targets;
  auto fields() { return std::tie(ids, targets); }
};

/// This data rank's rows of the batch of a step.
inline Words batch_of(std::int64_t step, std::int64_t part = 0, std::int64_t parts = 1) {
  const auto count = rows * length;
  const auto ids = (at::arange(count, at::kLong) * (step + 3) + step).remainder(vocabulary).view({rows, length});
  const auto targets = (ids * 7 + 1).remainder(vocabulary);
  const auto own = rows / parts;
  return {ids.narrow(0, part * own, own), targets.narrow(0, part * own, own)};
}

struct Course {
  std::vector<double> losses = {}, norms = {};
  StateDict weights = {};  ///< on the main process
};

struct Plan {
  AcceleratorOptions options = {};
  std::int64_t micro_batches = 4, first = 0, steps = 4;
  bool recomputes = false, is_tied = true, counts = false, has_batch_statistics = false;
  double dropout = 0;
  std::filesystem::path load = {}, save = {}, model = {};
};

/// The statistics of batches differ between micro-batches: they are those of one rank only with the same ones.
inline void use_running_statistics(ChainImpl& net) { net.norm->eval(); }

/// With a large epsilon: rounding errors of gradients that are zero, as those of biases of keys, must not become steps.
inline torch::optim::AdamWOptions smooth_adamw() { return torch::optim::AdamWOptions(0.01).eps(1e-4); }

inline Course train(const Plan& plan) {
  Accelerator accelerator(plan.options);
  set_seed(11);
  Chain net(8, plan.recomputes, plan.is_tied);
  if (!plan.has_batch_statistics) use_running_statistics(*net);
  net->dropout = plan.dropout;
  torch::optim::AdamW adam(net->parameters(), smooth_adamw());
  auto [model, optimizer] = accelerator.prepare(net, adam);
  if (!plan.load.empty()) accelerator.load_state(plan.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  Course course;
  for (auto step = plan.first; step < plan.first + plan.steps; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto batch = batch_of(step, data.index(), data.size());
    const auto logits = [](auto& model, Words& part) { return model(part.ids).flatten(0, 1); };
    at::Tensor loss;
    if (plan.counts) {
      const auto sum = [&](auto& model, Words& part) {
        const auto each = at::cross_entropy_loss(logits(model, part), part.targets.flatten(), {}, at::Reduction::Sum);
        return std::pair(each, part.targets.numel());
      };
      loss = accelerator.pipeline_step(model, batch, sum, {.micro_batches = plan.micro_batches});
    } else {
      const auto mean = [&](auto& model, Words& part) {
        return at::cross_entropy_loss(logits(model, part), part.targets.flatten());
      };
      loss = accelerator.pipeline_step(model, batch, mean, {.micro_batches = plan.micro_batches});
    }
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).item<double>());
    if (accelerator.sync_gradients())
      course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 0.5).item<double>());
    optimizer.step();
    optimizer.zero_grad();
  }
  course.weights = accelerator.get_state_dict(model);
  if (!plan.save.empty()) accelerator.save_state(plan.save);
  if (!plan.model.empty()) accelerator.save_model(model, plan.model);
  return course;
}

/// What one rank computes, on that rank; other ranks get an empty course.
inline Course course_of_one(Plan plan) {
  const test::FirstRanks first(1);
  plan.options.parallel = {};
  plan.options.communicator = first.handle();
  return first.is_in() ? train(plan) : Course();
}

inline double distance(const StateDict& a, const StateDict& b) {
  CHECK(a.values().size() == b.values().size());
  double most = 0;
  for (const auto& [name, value] : a.values()) {
    const auto& left = std::get<at::Tensor>(value);
    const auto right = b.get<at::Tensor>(name);
    if (left.numel() > 0)
      most = hortator::test::larger(most, (left.to(at::kDouble) - right.to(at::kDouble)).abs().max().item<double>());
  }
  return most;
}

/// Processors sum in orders of their own, which depend on the number of rows: equal within the rounding of the largest
/// terms.
inline bool is_close(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() <= 1e-6 * b.abs().max()).item<bool>();
}

inline void check_near(const Course& course, const Course& expected, double tolerance = 1e-5) {
  if (expected.losses.empty()) return;  // another rank compares
  REQUIRE(course.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < course.losses.size(); ++i) {
    INFO("step " << i);
    CHECK(std::abs(course.losses[i] - expected.losses[i]) <= tolerance);
  }
  for (std::size_t i = 0; i < course.norms.size(); ++i)
    CHECK(std::abs(course.norms[i] - expected.norms[i]) <= 10 * tolerance * expected.norms[i]);
  CHECK(distance(course.weights, expected.weights) <= 100 * tolerance);
}

inline ParallelConfig stages(int ranks, PipelineSchedule schedule = PipelineSchedule::one_f_one_b) {
  return {.pipeline = ranks, .pipeline_schedule = schedule};
}

inline int ranks() { return State().num_processes(); }

/// @collective
inline bool same_everywhere(const at::Tensor& tensor) {
  const auto values = tensor.detach().clone(at::MemoryFormat::Contiguous);
  const std::string_view bytes(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  const auto all = mpi::all_gather(mpi::Communicator::world(), bytes);
  return std::ranges::all_of(all, [&](const auto& one) { return one == all.front(); });
}

}  // namespace hortator::test::pipelines
