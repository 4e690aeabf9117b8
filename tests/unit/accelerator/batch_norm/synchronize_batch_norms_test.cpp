// BatchNorm layers that compute as SyncBatchNorm does, although they are members of other types.
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include "support/catch.hpp"
#include "unit/accelerator/training/joined_batch.hpp"

using namespace hortator;
using test::close;
using test::JoinedBatch;
using torch::nn::BatchNormOptions;

namespace {

/// What a step of a layer computes.
struct StepResults {
  at::Tensor output, input_gradient;
  std::vector<at::Tensor> gradients, buffers;
};

template <typename Norm>
Norm layer(const BatchNormOptions& options, at::ScalarType type) {
  Norm norm(options);
  norm->to(type == at::kDouble ? at::kDouble : at::kFloat);
  const at::NoGradGuard no_grad;
  for (auto& parameter : norm->parameters()) parameter.copy_(at::linspace(0.5, 1.5, parameter.numel()));
  return norm;
}

// Gradients of this rank, before they are averaged.
template <typename Layer>
StepResults layer_step(Layer& norm, const at::Tensor& rows, const at::Tensor& weights) {
  const auto input = rows.detach().requires_grad_();
  StepResults results;
  results.output = norm->forward(input);
  auto inputs = norm->parameters();
  inputs.insert(inputs.begin(), input);
  results.gradients = torch::autograd::grad({(results.output * weights).sum()}, inputs);
  results.input_gradient = results.gradients.front();
  results.gradients.erase(results.gradients.begin());
  for (const auto& item : norm->named_buffers())
    if (item.value().defined()) results.buffers.push_back(item.value().clone());
  return results;
}

bool same_results(const StepResults& a, const StepResults& b) {
  const auto same = [](const auto& left, const auto& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& x, const auto& y) { return at::equal(x, y); });
  };
  return at::equal(a.output, b.output) && at::equal(a.input_gradient, b.input_gradient) &&
         same(a.gradients, b.gradients) && same(a.buffers, b.buffers);
}

// Four steps of a marked BatchNorm, a SyncBatchNorm, and a BatchNorm of the joined batch.
template <typename Plain, typename Sync>
void compare_marked(std::vector<std::int64_t> shape, at::ScalarType type, const BatchNormOptions& options,
                    std::int64_t first = 2) {
  Accelerator accelerator;
  const JoinedBatch batch(accelerator, std::move(shape), type, first);
  auto marked = layer<Plain>(options, type);
  auto sync = layer<Sync>(options, type);
  auto plain = layer<Plain>(options, type);
  CHECK(synchronize_batch_norms(marked) == 1);
  auto prepared = accelerator.prepare(marked, sync);
  for (int number = 0; number < 4; ++number) {
    INFO(batch.whole.dim() << " dimensions, " << type << ", step " << number);
    const auto own = layer_step(marked, batch.own(batch.whole) + number, batch.own(batch.weights));
    const auto expected = layer_step(plain, batch.whole + number, batch.weights);
    CHECK(same_results(own, layer_step(sync, batch.own(batch.whole) + number, batch.own(batch.weights))));
    CHECK(close(own.output, batch.own(expected.output), type));
    CHECK(close(own.input_gradient, batch.own(expected.input_gradient), type));
    for (std::size_t i = 0; i < expected.gradients.size(); ++i)
      CHECK(close(accelerator.reduce(own.gradients[i], Reduce::sum), expected.gradients[i], type));
    for (std::size_t i = 0; i < expected.buffers.size(); ++i) CHECK(close(own.buffers[i], expected.buffers[i], type));
  }
}

const auto any_types = {at::kFloat, at::kDouble, at::kBFloat16};

}  // namespace

TEST_CASE("marked layers equal SyncBatchNorm bitwise, and BatchNorm of the joined batch") {
  for (const auto type : any_types) {
    for (const bool is_affine : {true, false}) {
      for (const bool tracks : {true, false}) {
        const auto options = [&](std::int64_t features) {
          return BatchNormOptions(features).affine(is_affine).track_running_stats(tracks);
        };
        INFO("affine " << is_affine << ", tracks " << tracks);
        compare_marked<torch::nn::BatchNorm1d, SyncBatchNorm1d>({0, 3}, type, options(3));
        compare_marked<torch::nn::BatchNorm1d, SyncBatchNorm1d>({0, 3, 5}, type, options(3).eps(0.1).momentum(0.5));
        compare_marked<torch::nn::BatchNorm2d, SyncBatchNorm2d>({0, 4, 3, 2}, type, options(4));
        compare_marked<torch::nn::BatchNorm3d, SyncBatchNorm3d>({0, 2, 3, 2, 2}, type, options(2));
      }
    }
  }
}

TEST_CASE("without momentum, batches count equally") {
  Accelerator accelerator;
  const JoinedBatch batch(accelerator, {0, 3}, at::kDouble);
  auto marked = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3).momentum(std::nullopt), at::kDouble);
  auto plain = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3).momentum(std::nullopt), at::kDouble);
  synchronize_batch_norms(marked);
  auto model = accelerator.prepare(marked);
  for (int number = 0; number < 3; ++number) {
    model(batch.own(batch.whole) + number);
    plain(batch.whole + number);
    CHECK(close(marked->running_mean, plain->running_mean, at::kDouble));
    CHECK(close(marked->running_var, plain->running_var, at::kDouble));
    CHECK(marked->num_batches_tracked.item<int>() == number + 1);
  }
}

TEST_CASE("a rank may have no samples at all, in marked layers as well") {
  if (State().num_processes() == 1) return;
  compare_marked<torch::nn::BatchNorm1d, SyncBatchNorm1d>({0, 3}, at::kFloat, BatchNormOptions(3), /*first=*/0);
}

TEST_CASE("on one rank, marked layers are plain BatchNorm, bit for bit") {
  Accelerator accelerator;
  if (accelerator.num_processes() > 1) return;
  const auto x = at::arange(15, at::kFloat).view({5, 3});
  for (const bool is_prepared : {false, true}) {
    for (const bool tracks : {true, false}) {
      const auto options = BatchNormOptions(3).momentum(std::nullopt).affine(tracks).track_running_stats(tracks);
      auto marked = layer<torch::nn::BatchNorm1d>(options, at::kFloat);
      auto plain = layer<torch::nn::BatchNorm1d>(options, at::kFloat);
      synchronize_batch_norms(marked);
      if (is_prepared) accelerator.prepare(marked);
      CHECK(same_results(layer_step(marked, x, x), layer_step(plain, x, x)));
    }
  }
}

TEST_CASE("evaluation uses the running statistics, and no rank waits for another") {
  Accelerator accelerator;
  for (const bool is_affine : {true, false}) {
    for (const bool tracks : {true, false}) {
      const auto options = BatchNormOptions(3).affine(is_affine).track_running_stats(tracks);
      auto marked = layer<torch::nn::BatchNorm1d>(options, at::kDouble);
      auto plain = layer<torch::nn::BatchNorm1d>(options, at::kDouble);
      synchronize_batch_norms(marked);
      auto model = accelerator.prepare(marked);
      const auto x = at::arange(12, at::kDouble).view({4, 3}) * (1 + accelerator.process_index());
      model.eval();
      plain->eval();
      for (int call = 0; call <= accelerator.process_index(); ++call) {  // another number of times on each rank
        CHECK(at::equal(model(x), plain(x)));
        const at::NoGradGuard no_grad;
        CHECK(at::equal(model(x), plain(x)));
        const c10::InferenceMode inference;
        CHECK(at::equal(model(x), plain(x)));
      }
      accelerator.wait_for_everyone();
    }
  }
}

TEST_CASE("without gradients and in inference mode, training statistics are those of all ranks") {
  Accelerator accelerator;
  const JoinedBatch batch(accelerator, {0, 3}, at::kDouble);
  auto marked = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3), at::kDouble);
  auto plain = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3), at::kDouble);
  synchronize_batch_norms(marked);
  auto model = accelerator.prepare(marked);
  {
    const at::NoGradGuard no_grad;
    CHECK(close(model(batch.own(batch.whole)), batch.own(plain(batch.whole)), at::kDouble));
  }
  CHECK(close(marked->running_var, plain->running_var, at::kDouble));
  const c10::InferenceMode inference;
  CHECK(close(marked(batch.own(batch.whole)), batch.own(plain(batch.whole)), at::kDouble));
}

TEST_CASE("a layer that is frozen by eval, and layers that are not marked, use this rank's batch only") {
  Accelerator accelerator;
  auto marked = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3), at::kDouble);
  auto plain = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3), at::kDouble);
  synchronize_batch_norms(marked);
  accelerator.prepare(marked);
  marked->eval();
  const auto x = at::arange(12, at::kDouble).view({4, 3});
  for (int call = 0; call <= accelerator.process_index(); ++call) {
    auto frozen = layer<torch::nn::BatchNorm1d>(BatchNormOptions(3), at::kDouble);
    frozen->eval();
    CHECK(at::equal(marked(x), frozen(x)));
    CHECK(close(plain(x).mean(0), plain->bias, at::kDouble));
    auto without_tensors =
        layer<torch::nn::BatchNorm1d>(BatchNormOptions(3).affine(false).track_running_stats(false), at::kDouble);
    CHECK(close(without_tensors(x).mean(0), at::zeros({3}, at::kDouble), at::kDouble));
  }
  CHECK(plain->num_batches_tracked.item<int>() == accelerator.process_index() + 1);
  accelerator.wait_for_everyone();
}

TEST_CASE("marked layers that are not connected to other ranks are an error in training, and none in evaluation") {
  Accelerator accelerator;
  torch::nn::BatchNorm1d norm(3);
  synchronize_batch_norms(norm);
  const auto x = at::arange(12, at::kFloat).view({4, 3});
  if (accelerator.num_processes() > 1)
    CHECK_THROWS_WITH(norm(x), ContainsSubstring("was not prepared and is used in training"));
  accelerator.prepare(norm);
  CHECK(norm(x).defined());
  accelerator.free_memory();
  CHECK_THROWS_WITH(norm(x), ContainsSubstring("after its Accelerator was destroyed"));
  norm->eval();
  CHECK(norm(x).defined());
  norm->train();
  accelerator.prepare(norm);
  CHECK(norm(x).defined());
}

TEST_CASE("a rank that has marked layers where another has not is an error on all ranks") {
  Accelerator accelerator;
  torch::nn::BatchNorm1d norm(3);
  torch::nn::Sequential network(torch::nn::Linear(3, 3), torch::nn::BatchNorm1d(3));
  if (accelerator.is_main_process()) {
    synchronize_batch_norms(norm);
    synchronize_batch_norms(network);
  }
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(accelerator.prepare(norm), ContainsSubstring("The model differs between ranks"));
  CHECK_THROWS_WITH(accelerator.prepare(network), ContainsSubstring("1 synchronised"));
}

TEST_CASE("one value per channel on all ranks together is an error, and LibTorch refuses it on one rank") {
  Accelerator accelerator;
  torch::nn::BatchNorm1d norm(3);
  synchronize_batch_norms(norm);
  auto model = accelerator.prepare(norm);
  CHECK_THROWS_WITH(model(at::ones({1, 3})), ContainsSubstring("Expected more than 1 value per channel when training"));
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(model(at::ones({0, 3})), ContainsSubstring("0 values a channel on all ranks together"));
}

TEST_CASE("join_uneven_inputs refuses marked layers") {
  Accelerator accelerator({.data = {.even_batches = false}});
  torch::nn::BatchNorm1d norm(3);
  synchronize_batch_norms(norm);
  auto model = accelerator.prepare(norm);
  if (accelerator.num_processes() == 1) return;
  CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("BatchNorm ones, synchronised"));
}

TEST_CASE("a BatchNorm that no pointer owns is refused, and models without BatchNorm have none") {
  torch::nn::BatchNorm1dImpl norm(3);
  CHECK_THROWS_WITH(synchronize_batch_norms(norm), ContainsSubstring("that no std::shared_ptr owns"));
  CHECK(unsynchronized_batch_norms(norm) == std::vector<std::string>{""});
  torch::nn::Linear linear(2, 2);
  CHECK(synchronize_batch_norms(linear) == 0);
  CHECK(unsynchronized_batch_norms(linear).empty());
}
