#pragma once

#include <torch/optim/adamw.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "parallel/mesh/rank_group.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/state/stored_tensors.hpp"
#include "unit/accelerator/tensor/tensor_models.hpp"
#include "unit/accelerator/user_transformer.hpp"

/// Runs of models that are divided among ranks, to be compared with the same on one rank.
namespace hortator::test {

struct TensorRun {
  std::string family = "llama";  ///< of tensor_models.hpp, or "user": user_transformer()
  AcceleratorOptions options = {};
  std::int64_t first = 0, steps = many_steps();
  std::int64_t length = tensor_length;  ///< of the sequences of a language model
  std::filesystem::path load = {}, save = {}, export_to = {};
  bool recomputes = false;
};

struct TensorCourse {
  std::vector<double> losses, norms;
};

template <typename Model>
at::Tensor user_loss(Model& model, const TokenRows& rows) {
  return torch::nn::functional::cross_entropy(model(rows.ids).view({-1, tensor_vocabulary}), rows.targets);
}

/// Steps whose loss is loss(model, step, index, parts).
template <typename Net, typename Loss>
TensorCourse train_net(const TensorRun& run, Net& net, const Loss& loss_of_step) {
  Accelerator accelerator(run.options);
  torch::optim::AdamW adam(net.parameters(), torch::optim::AdamWOptions(1e-3));
  auto [model, optimizer] = accelerator.prepare(net, adam);
  if (!run.load.empty()) accelerator.load_state(run.load);
  const auto& data = accelerator::Training::of(accelerator).data();
  TensorCourse course;
  for (auto step = run.first; step < run.first + run.steps; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto loss = loss_of_step(model, step % 5, data.index(), data.size());
    accelerator.backward(loss);
    const auto norm = accelerator.clip_grad_norm_(model.parameters(), 1.0).template item<double>();
    if (accelerator.sync_gradients()) course.norms.push_back(norm);
    optimizer.step();
    optimizer.zero_grad();
    course.losses.push_back(accelerator.reduce(loss, Reduce::mean).template item<double>());
  }
  if (!run.save.empty()) accelerator.save_state(run.save);
  if (!run.export_to.empty()) accelerator.save_model(model, run.export_to);
  return course;
}

inline TensorCourse train(const TensorRun& run) {
  if (run.family == "user")
    return train_net(run, *user_transformer(), [](auto& model, auto... part) { return user_loss(model, {part...}); });
  auto net = tensor_model(run.family);
  if (run.recomputes) net->set_recompute_layers(true);
  if (run.family == "vit")
    return train_net(run, *net, [](auto& model, auto... part) { return image_loss(model, {part...}); });
  return train_net(run, *net, [&](auto& model, auto... part) { return token_loss(model, {part..., run.length}); });
}

inline std::vector<double> from_first(const mpi::Communicator& world, std::vector<double> values) {
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  const auto all = mpi::broadcast(world, bytes, 0);
  std::vector<double> result(all.size() / sizeof(double));
  std::memcpy(result.data(), all.data(), all.size());
  return result;
}

/// What the first `ranks` ranks compute, given to all.
inline TensorCourse train_on(int ranks, TensorRun run) {
  const auto world = mpi::Communicator::world();
  TensorCourse course;
  {
    const FirstRanks first(ranks);
    run.options.communicator = first.handle();
    if (first.is_in()) course = train(run);
  }
  return {.losses = from_first(world, course.losses), .norms = from_first(world, course.norms)};
}

inline TensorCourse train_alone(const TensorRun& run) { return train_on(1, run); }

inline void check_same(const std::vector<double>& found, const std::vector<double>& expected, double tolerance = 1e-5) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("step " << i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance);
  }
}

}  // namespace hortator::test
