// Gradient accumulation through the public API, and losses weighted by the number of items that they sum up.
#include <ATen/record_function.h>
#include <torch/nn/functional/loss.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

struct Line : torch::nn::Module {
  Line() : weight(register_parameter("weight", at::zeros({3}))) {}
  at::Tensor forward(const at::Tensor& x) const { return x.mv(weight); }
  at::Tensor weight;
};

/// `count` rows, different for each rank and micro-step.
at::Tensor rows(int rank, int micro_step, std::int64_t count) {
  return at::arange(1, 3 * count + 1, at::kFloat).view({count, 3}) * (1 + rank) + micro_step;
}
// The number of rows differs between ranks and micro-steps; rank 1 has none in its second micro-step.
std::int64_t count_of(int rank, int micro_step) { return rank == 1 && micro_step == 1 ? 0 : 1 + rank + 2 * micro_step; }

/// The gradient of the mean over all rows of all ranks and micro-steps.
at::Tensor whole_mean(int ranks, int micro_steps) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int step = 0; step < micro_steps; ++step) all.push_back(rows(rank, step, count_of(rank, step)));
  }
  return at::cat(all).mean(0);
}

double distance(const at::Tensor& actual, const at::Tensor& expected_values) {
  return ((actual - expected_values).abs().max() / expected_values.abs().max()).item<double>();
}

}  // namespace

TEST_CASE("accumulated gradients equal those of the joined batch; step and zero_grad do nothing in between") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  torch::optim::SGD sgd(line.parameters(), 1.0);
  auto [model, optimizer] = accelerator.prepare(line, sgd);
  const int rank = accelerator.process_index();
  for (int round = 0; round < 2; ++round) {
    const auto before = line.weight.detach().clone();
    at::Tensor expected = at::zeros({3});
    for (int step = 0; step < 2; ++step) {
      auto micro_step = accelerator.accumulate(model);
      CHECK(accelerator.sync_gradients() == (step == 1));
      accelerator.backward(model(rows(rank, step, 2)).mean());
      for (int other = 0; other < accelerator.num_processes(); ++other) {
        expected += rows(other, step, 2).mean(0) / (2 * accelerator.num_processes());
      }
      optimizer.step();
      if (step == 0) CHECK(at::equal(line.weight, before));
      optimizer.zero_grad();
      CHECK(line.weight.grad().defined() == (step == 0));
    }
    CHECK(distance(before - line.weight, expected) < 1e-6);
  }
}

TEST_CASE("a loss given as sum and count weighs every item equally, over micro-steps and ranks") {
  const int micro_steps = GENERATE(1, 2, 3);
  Accelerator accelerator({.gradient_accumulation_steps = micro_steps});
  Line line;
  torch::optim::SGD sgd(line.parameters(), 1.0);
  auto [model, optimizer] = accelerator.prepare(line, sgd);
  const int rank = accelerator.process_index();
  for (int round = 0; round < 2; ++round) {
    const auto before = line.weight.detach().clone();
    for (int step = 0; step < micro_steps; ++step) {
      auto micro_step = accelerator.accumulate(model);
      const auto count = count_of(rank, step);
      const auto sum = model(rows(rank, step, count)).sum();
      if (step == 0) {
        accelerator.backward(sum, static_cast<double>(count));
      } else {
        accelerator.backward(sum, at::scalar_tensor(count, at::kLong));
      }
      optimizer.step();
      optimizer.zero_grad();
    }
    CHECK(distance(before - line.weight, whole_mean(accelerator.num_processes(), micro_steps)) < 1e-6);
  }
}

namespace {

/// The types of the factor and of the first tensor in each call of _foreach_mul_ while it lives.
class ForeachFactors {
 public:
  using Types = std::vector<std::pair<at::ScalarType, at::ScalarType>>;

  ForeachFactors() {
    types().clear();
    const auto note = [](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
      if (std::string_view(call.name()) == "aten::_foreach_mul_")
        types().emplace_back(call.inputs()[1].toTensor().scalar_type(),
                             call.inputs()[0].toTensorVector().front().scalar_type());
      return nullptr;
    };
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(note).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  ~ForeachFactors() { at::removeCallback(handle_); }
  ForeachFactors(const ForeachFactors&) = delete;
  ForeachFactors& operator=(const ForeachFactors&) = delete;

  static Types& types() {
    static Types all;
    return all;
  }

 private:
  at::CallbackHandle handle_ = 0;
};

}  // namespace

TEST_CASE("gradients of summed losses are scaled by a factor of their own type, for which there is one kernel") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto model = accelerator.prepare(line);
  const ForeachFactors factors;
  for (int step = 0; step < 2; ++step) {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(model(at::ones({2, 3})).sum(), 2);
  }
  REQUIRE(ForeachFactors::types().size() == 1);
  CHECK(ForeachFactors::types().front() == std::pair(at::kFloat, at::kFloat));
}

TEST_CASE("summed losses are correct with sync_each_batch and 16-bit communication") {
  Accelerator accelerator({.gradient_accumulation_steps = 2,
                           .gradient_accumulation = {.sync_each_batch = true},
                           .ddp = {.comm_hook = DDPCommunicationHookType::fp16}});
  Line line;
  auto model = accelerator.prepare(line);
  constexpr std::int64_t row_count = 40000;  // the sum of this many gradients overflows 16 bits
  for (int step = 0; step < 2; ++step) {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(model(at::full({row_count, 3}, 3.0)).sum(), static_cast<double>(row_count));
  }
  CHECK(distance(line.weight.grad(), at::full({3}, 3.0)) < 1e-3);
}

TEST_CASE("gradients are zero, not NaN, if the total count is zero") {
  const int micro_steps = GENERATE(1, 2);
  Accelerator accelerator({.gradient_accumulation_steps = micro_steps});
  Line line;
  auto model = accelerator.prepare(line);
  for (int step = 0; step < micro_steps; ++step) {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(model(rows(0, 0, 0)).sum(), 0);
  }
  CHECK(at::equal(line.weight.grad(), at::zeros({3})));
}

TEST_CASE("each model has its own counts, and zero_grad clears them") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line a;
  Line b;
  torch::optim::SGD sgd_a(a.parameters(), 1.0);
  torch::optim::SGD sgd_b(b.parameters(), 1.0);
  auto [model_a, model_b, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
  for (int step = 0; step < 2; ++step) {
    auto micro_step = accelerator.accumulate(model_a, model_b);
    accelerator.backward(model_a(at::ones({2, 3})).sum(), 2);
    accelerator.backward(model_b(at::ones({5, 3})).sum() * 2, 5);
  }
  CHECK(distance(a.weight.grad(), at::ones({3})) < 1e-6);
  CHECK(distance(b.weight.grad(), at::full({3}, 2.0)) < 1e-6);
  {
    auto micro_step = accelerator.accumulate(model_a, model_b);
    accelerator.backward(model_a(at::ones({2, 3})).sum(), 2);
  }
  accelerator.set_sync_gradients(true);
  optimizer_a.zero_grad();
  accelerator.backward(model_a(at::ones({7, 3})).sum(), 7);
  CHECK(distance(a.weight.grad(), at::ones({3})) < 1e-6);
}

TEST_CASE("mixing means and sums within a group is an error") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto model = accelerator.prepare(line);
  {
    auto micro_step = accelerator.accumulate(model);
    accelerator.backward(model(at::ones({2, 3})).sum(), 2);
  }
  auto micro_step = accelerator.accumulate(model);
  CHECK_THROWS_AS(accelerator.backward(model(at::ones({2, 3})).mean()), UsageError);
}

TEST_CASE("invalid counts are refused") {
  Accelerator accelerator;
  Line line;
  auto model = accelerator.prepare(line);
  const auto sum = model(at::ones({2, 3})).sum();
  CHECK_THROWS_AS(accelerator.backward(sum, -1), UsageError);
  CHECK_THROWS_AS(accelerator.backward(sum, std::nan("")), UsageError);
  CHECK_THROWS_AS(accelerator.backward(sum, at::ones({2})), UsageError);
  auto joined = accelerator.join_uneven_inputs({model}, {.even_batches = false});
  if (accelerator.num_processes() > 1) CHECK_THROWS_AS(accelerator.backward(sum, 2), UsageError);
}

TEST_CASE("trigger_sync_in_backward averages within no_sync") {
  Accelerator accelerator;
  Line line;
  auto model = accelerator.prepare(line);
  const double mine = accelerator.process_index() + 1;
  const double mean = (accelerator.num_processes() + 1) / 2.0;
  auto local = accelerator.no_sync(model);
  accelerator.backward(model(at::full({1, 3}, mine)).sum());
  CHECK(at::allclose(line.weight.grad(), at::full({3}, mine)));
  {
    auto sync = accelerator.trigger_sync_in_backward(model);
    accelerator.backward(model(at::full({1, 3}, mine)).sum());
  }
  CHECK(at::allclose(line.weight.grad(), at::full({3}, 2 * mean)));
}

TEST_CASE("an exception within a micro-step does not leave synchronisation paused") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Line line;
  auto model = accelerator.prepare(line);
  CHECK_THROWS_AS(([&] {
                    auto micro_step = accelerator.accumulate(model);
                    throw std::runtime_error("a bad batch");
                  }()),
                  std::runtime_error);
  auto micro_step = accelerator.accumulate(model);
  CHECK(accelerator.sync_gradients());
  accelerator.backward(model(at::full({1, 3}, accelerator.process_index() + 1.0)).sum());
  CHECK(at::allclose(line.weight.grad(), at::full({3}, (accelerator.num_processes() + 1) / 4.0)));
}

TEST_CASE("an accumulation group ends with the loader's last batch") {
  Accelerator accelerator({.gradient_accumulation_steps = 2});
  Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer, loader] =
      accelerator.prepare(net, sgd, data_loader(Rows{.count = 3 * accelerator.num_processes()}, {.batch_size = 1}));
  std::string syncs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : loader) {
      auto micro_step = accelerator.accumulate(model);
      syncs += accelerator.sync_gradients() ? '1' : '0';
      accelerator.backward(at::mse_loss(model(batch.data), batch.target));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  CHECK(syncs == "011011");
}

TEST_CASE("a model prepared in evaluation mode does not average gradients") {
  Accelerator accelerator;
  Line line;
  auto model = accelerator.prepare_model(line, {.evaluation_mode = true});
  const double mine = accelerator.process_index() + 1;
  accelerator.backward(model(at::full({1, 3}, mine)).sum());
  CHECK(at::allclose(line.weight.grad(), at::full({3}, mine)));
}

TEST_CASE("the number of micro-steps is at least one") {
  CHECK_THROWS_AS(Accelerator({.gradient_accumulation_steps = 0}), UsageError);
  Accelerator accelerator;
  CHECK_THROWS_AS(accelerator.set_gradient_accumulation_steps(0), UsageError);
  accelerator.set_gradient_accumulation_steps(3);
  CHECK(accelerator.gradient_accumulation_steps() == 3);
}
