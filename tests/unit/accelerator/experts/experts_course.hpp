#pragma once

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"
#include "unit/accelerator/experts/experts_models.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"

/// Runs of models with experts that are divided among ranks, to be compared with the same on one rank.
namespace hortator::test {

struct ExpertRun {
  bool is_mixtral = true;
  AcceleratorOptions options = {};
  std::int64_t first = 0, steps = many_steps(), rows = expert_rows;
  std::filesystem::path load = {}, save = {};
  bool recomputes = false, by_counts = false;
};

struct ExpertCourse {
  std::vector<double> losses, norms, weights;
};

inline void append(std::vector<double>& to, const at::Tensor& tensor) {
  const auto values = tensor.detach().reshape({-1}).to(at::kDouble).contiguous();
  to.insert(to.end(), values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel());
}

/// One step's backward. Returns the loss of this rank's part.
template <typename Model>
at::Tensor learn(Accelerator& accelerator, Model& model, const ExpertRun& run, const ExpertBatch& batch) {
  using Net = std::remove_cvref_t<decltype(model.module())>;
  if constexpr (std::is_base_of_v<models::PretrainedModel, Net>) {
    const auto outputs = model(models::ModelInputs{.input_ids = batch.ids});
    const auto loss = token_losses(outputs.logits, batch.targets, at::Reduction::Mean) + 0.05 * outputs.aux_loss;
    accelerator.backward(loss);
    return loss.detach();
  } else {
    const auto logits = model(batch.ids);
    if (run.by_counts) {
      const auto sum = token_losses(logits, batch.targets, at::Reduction::Sum);
      accelerator.backward(sum, static_cast<double>(batch.targets.numel()));
      return sum.detach() * accelerator.num_processes() / static_cast<double>(run.rows * expert_length);
    }
    const auto loss = token_losses(logits, batch.targets, at::Reduction::Mean) +
                      0.05 * nn::load_balancing_loss(model.module()) + 0.001 * nn::router_z_loss(model.module());
    accelerator.backward(loss);
    return loss.detach();
  }
}

template <typename Net>
ExpertCourse train_with(Accelerator& accelerator, const ExpertRun& run, Net& net, torch::optim::Optimizer& steps) {
  auto [model, optimizer] = accelerator.prepare(net, steps);
  if (!run.load.empty()) accelerator.load_state(run.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  ExpertCourse course;
  for (auto step = run.first; step < run.first + run.steps; ++step) {
    const auto loss = learn(accelerator, model, run, ExpertBatch(step % 5, data.index(), data.size(), run.rows));
    course.norms.push_back(accelerator.clip_grad_norm_(model.parameters(), 1.0).template item<double>());
    optimizer.step();
    optimizer.zero_grad();
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
  }
  if (!run.save.empty()) accelerator.save_state(run.save);
  {
    const auto whole = accelerator.summon_full_parameters(model);
    for (const auto& parameter : model.parameters()) append(course.weights, parameter);
  }
  accelerator.wait_for_everyone();
  return course;
}

inline ExpertCourse train(const ExpertRun& run) {
  Accelerator accelerator(run.options);
  if (run.is_mixtral) {
    auto net = mixtral();
    if (run.recomputes) net->set_recompute_layers(true);
    torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(1e-3));
    return train_with(accelerator, run, *net, adam);
  }
  ExpertNet net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  return train_with(accelerator, run, net, sgd);
}

inline std::vector<double> from_first(const std::vector<double>& values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  const auto all = mpi::broadcast(mpi::Communicator::world(), bytes, 0);
  std::vector<double> result(all.size() / sizeof(double));
  std::memcpy(result.data(), all.data(), all.size());
  return result;
}

/// What one rank computes, given to all ranks.
inline ExpertCourse train_alone(ExpertRun run) {
  ExpertCourse course;
  {
    const FirstRanks first(1);
    run.options.communicator = first.handle();
    if (first.is_in()) course = train(run);
  }
  return {from_first(course.losses), from_first(course.norms), from_first(course.weights)};
}

inline void check_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance = 1e-5) {
  REQUIRE(found.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = hortator::test::larger(worst, std::abs(found[i] - expected[i]));
  CHECK(worst < tolerance);
}

/// All numbers of ranks among which experts can be divided here.
inline std::vector<int> divisions() {
  std::vector<int> all;
  for (const int experts : {2, 3, 4})
    if (State().num_processes() % experts == 0) all.push_back(experts);
  return all;
}

inline AcceleratorOptions divided_by(int experts) { return {.parallel = {.experts = experts}}; }

}  // namespace hortator::test
