// A wave that is carried over a periodic grid of 32 x 32 cells, two ranks: the model learns the rate of change from the
// field. Compares a reservoir with consecutive samples, and a training step with the same work written by hand as codes
// do it without buckets and fused optimizers: a blocking reduction for each parameter after the backward pass, then
// LibTorch's own optimizer, then a reduction for the loss.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>

#include "c_run.hpp"
#include "simulation/training/trained_model.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

using namespace hortator::test;

namespace {

constexpr std::int64_t side = 32;
constexpr std::int64_t cells = side * side;
constexpr std::int64_t batch_size = 8;

/// Fields at consecutive times, and their rates of change.
class Wave {
 public:
  void advance() {
    for (std::int64_t sample = 0; sample < batch_size; ++sample, ++step_) {
      const double time = 0.01 * static_cast<double>(step_ * world_size() + world_rank());
      for (std::int64_t cell = 0; cell < cells; ++cell) {
        const double x = 2 * M_PI * (static_cast<double>(cell % side) / side - time);
        const double y = 2 * M_PI * (static_cast<double>(cell / side) / side - 0.789 * time);
        const auto at = static_cast<std::size_t>(sample * cells + cell);
        field[at] = static_cast<float>(std::sin(x) * std::sin(y));
        rate[at] = static_cast<float>(-2 * M_PI * (std::cos(x) * std::sin(y) + 0.789 * std::sin(x) * std::cos(y)));
      }
    }
  }
  void bind(CBatch& batch) {
    batch.add(HORTATOR_INPUT, Array(field, {batch_size, cells})).add(HORTATOR_TARGET, Array(rate, {batch_size, cells}));
  }
  at::Tensor input() { return at::from_blob(field.data(), {batch_size, cells}); }
  at::Tensor target() { return at::from_blob(rate.data(), {batch_size, cells}); }

  std::vector<float> field = std::vector<float>(batch_size * cells);
  std::vector<float> rate = std::vector<float>(batch_size * cells);

 private:
  std::int64_t step_ = 0;
};

/// The mean squared error over the 400 samples a rank that follow 500 steps.
double error_after(const std::string& name, bool uses_buffer) {
  const CRun run(settings_file(name,
                               "models: {net: {type: mlp, layers: [1024, 1024], optimizer: {type: adam, lr: 1.0e-3}}}\n"
                               "buffers: {samples: {type: reservoir, capacity: 512, batch_size: 8}}\n"));
  auto* model = run.model("net");
  auto* buffer = run.buffer("samples");
  Wave wave;
  CBatch batch(run);
  wave.bind(batch);
  for (int step = 0; step < 500; ++step) {
    wave.advance();
    if (uses_buffer) {
      REQUIRE(hortator_buffer_put(buffer, batch) == HORTATOR_OK);
      REQUIRE(hortator_buffer_train(buffer, model, 1, nullptr) == HORTATOR_OK);
    } else {
      REQUIRE(hortator_train(model, batch, nullptr) == HORTATOR_OK);
    }
  }
  double sum = 0;
  for (int step = 0; step < 50; ++step) {
    wave.advance();
    double error = 0;
    REQUIRE(hortator_evaluate(model, batch, &error) == HORTATOR_OK);
    sum += error / 50;
  }
  return sum;
}

/// A network with the weights of `model`, trained by hand.
class ByHand {
 public:
  ByHand(hortator_model* model, int layers, bool uses_adam) {
    for (int layer = 0; layer < layers; ++layer) {
      if (layer > 0) network_->push_back(torch::nn::Functional(at::relu));
      network_->push_back(torch::nn::Linear(cells, cells));
    }
    const at::NoGradGuard no_grad;
    auto parameters = network_->parameters();
    const auto weights = hortator::simulation::TrainedModel::find(model)->whole_weights();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(weights[i].second);
    if (uses_adam) {
      optimizer_ = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(1e-4));
    } else {
      optimizer_ = std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(1e-3).momentum(0.9));
    }
  }

  double train(Wave& wave) {
    optimizer_->zero_grad();
    const auto loss = at::mse_loss(network_->forward(wave.input()), wave.target());
    loss.backward();
    for (const auto& parameter : network_->parameters()) {
      auto gradient = parameter.grad();
      MPI_Allreduce(MPI_IN_PLACE, gradient.mutable_data_ptr(), static_cast<int>(gradient.numel()), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
      gradient /= world_size();
    }
    optimizer_->step();
    auto mean = loss.item<float>();
    MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return static_cast<double>(mean) / world_size();
  }

 private:
  torch::nn::Sequential network_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

/// The seconds of the slower rank.
double seconds_of(const std::function<void()>& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = std::chrono::steady_clock::now();
  work();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

/// The median over pairs of blocks of (our time) / (time by hand). Both train on the same samples, and must have the
/// same losses.
double step_ratio(int layers, bool uses_adam) {
  std::string sizes = "1024";
  for (int layer = 0; layer < layers; ++layer) sizes += ", 1024";
  const CRun run(settings_file(
      "step", "models: {net: {type: mlp, layers: [" + sizes + "], optimizer: " +
                  (uses_adam ? "{type: adam, lr: 1.0e-4}" : "{type: sgd, lr: 1.0e-3, momentum: 0.9}") + "}}\n"));
  auto* model = run.model("net");
  ByHand other(model, layers, uses_adam);
  Wave wave;
  CBatch batch(run);
  wave.bind(batch);
  wave.advance();
  std::vector<double> ratios;
  double largest = 0;
  for (int pair = 0; pair < 21; ++pair) {
    std::vector<double> ours;
    std::vector<double> theirs;
    const double seconds = seconds_of([&] {
      for (int step = 0; step < 10; ++step) REQUIRE(hortator_train(model, batch, &ours.emplace_back()) == HORTATOR_OK);
    });
    const double by_hand = seconds_of([&] {
      for (int step = 0; step < 10; ++step) theirs.push_back(other.train(wave));
    });
    if (pair > 0) ratios.push_back(seconds / by_hand);
    for (std::size_t i = 0; i < ours.size(); ++i)
      largest = hortator::test::larger(largest, std::abs(ours[i] - theirs[i]) / (1 + theirs[i]));
  }
  std::ranges::sort(ratios);
  if (world_rank() == 0) {
    std::printf("%d layers, %s: median ratio %.3f (quartiles %.3f and %.3f), losses differ by %.1e\n", layers,
                uses_adam ? "Adam" : "SGD", ratios[10], ratios[5], ratios[15], largest);
  }
  CHECK(largest < 1e-5);
  return ratios[10];
}

}  // namespace

TEST_CASE("a reservoir of an advection learns what consecutive samples do not", "[simulation]") {
  const double consecutive = error_after("consecutive", false);
  const double reservoir = error_after("reservoir", true);
  if (world_rank() == 0) std::printf("mean squared error: reservoir %.1e, consecutive %.1e\n", reservoir, consecutive);
  CHECK(reservoir <= 1e-4);
  CHECK(consecutive > 1e-4);  // so that the bound above means something
}

TEST_CASE("a training step is shorter than the same work with a blocking reduction for each parameter",
          "[simulation]") {
  CHECK(step_ratio(8, false) <= 0.7);
  CHECK(step_ratio(8, true) <= 0.45);
  step_ratio(1, false);
  step_ratio(1, true);
}
