// Losses that reach different models on different ranks.
#include <torch/nn/modules/linear.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

constexpr double tiny_bucket = 1e-9;  // MiB: every gradient is reduced on its own, in the middle of backward

at::Tensor ones() { return at::ones({2, 3}); }

// Two identical models: only their names distinguish their gradients.
struct Twins {
  explicit Twins(AcceleratorOptions options)
      : accelerator(std::move(options)),
        first(accelerator.prepare(a)),
        second(accelerator.prepare(b)),
        optimizer(accelerator.prepare(sgd)) {}
  at::Tensor loss(bool with_first, bool with_second) {
    auto sum = at::zeros({}).requires_grad_();
    if (with_first) sum = sum + first(ones()).sum();
    if (with_second) sum = sum + second(ones()).sum();
    return sum;
  }
  void step_together() {
    accelerator.backward(loss(true, true));
    a->zero_grad();
    b->zero_grad();
  }

  Accelerator accelerator;
  torch::nn::Linear a{3, 3};
  torch::nn::Linear b{3, 3};
  Model<torch::nn::Linear> first;
  Model<torch::nn::Linear> second;
  torch::optim::SGD sgd{{a->weight, a->bias, b->weight, b->bias}, 0.1};
  Optimizer optimizer;  // without which shards of gradients have no use
};

}  // namespace

TEST_CASE("a loss that reaches different models on different ranks is an error on all ranks that names both") {
  for (const int stage : {0, 2}) {
    for (const int passes_before : {0, 2}) {
      for (const bool plain : {false, true}) {
        CAPTURE(stage, passes_before, plain);
        Twins twins({.ddp = {.bucket_cap_mb = tiny_bucket, .find_unused_parameters = true}, .zero = {.stage = stage}});
        if (twins.accelerator.num_processes() == 1) return;
        for (int pass = 0; pass < passes_before; ++pass) twins.step_together();
        const bool is_first = twins.accelerator.process_index() == 0;
        const auto loss = twins.loss(is_first, !is_first);
        CHECK_THROWS_WITH(plain ? loss.backward() : twins.accelerator.backward(loss),
                          ContainsSubstring("Backward reached model 0 on rank 0, and model 1 on rank 1"));
      }
    }
  }
}

TEST_CASE("a rank whose loss does not reach the model is an error on all ranks") {
  for (const int passes_before : {0, 2}) {
    CAPTURE(passes_before);
    Twins twins({.ddp = {.bucket_cap_mb = tiny_bucket}});
    if (twins.accelerator.num_processes() == 1) return;
    for (int pass = 0; pass < passes_before; ++pass) twins.step_together();
    const bool uses = !twins.accelerator.is_last_process();
    CHECK_THROWS_WITH(twins.accelerator.backward(twins.loss(uses, uses)),
                      ContainsSubstring("Backward reached model 0, model 1 on rank 0, and none on rank " +
                                        std::to_string(twins.accelerator.num_processes() - 1)));
  }
}

TEST_CASE("models that ranks use in different orders are reported in the next pass") {
  Twins twins({.ddp = {.bucket_cap_mb = tiny_bucket}});
  if (twins.accelerator.num_processes() == 1) return;
  twins.step_together();
  const auto x = ones();
  if (twins.accelerator.process_index() == 0) {
    const auto first_sum = twins.first(x).sum();
    twins.accelerator.backward(first_sum + twins.second(x).sum());
  } else {
    const auto first_sum = twins.second(x).sum();
    twins.accelerator.backward(first_sum + twins.first(x).sum());
  }
  CHECK_THROWS_WITH(twins.accelerator.backward(twins.loss(true, true)), ContainsSubstring("in different orders"));
}

TEST_CASE("models that no rank uses, and losses that reach no model, are not errors") {
  Twins twins({.ddp = {.bucket_cap_mb = tiny_bucket}});
  for (int pass = 0; pass < 3; ++pass) {
    twins.accelerator.backward(twins.loss(true, false));
    twins.accelerator.backward(twins.loss(false, true));
    twins.accelerator.backward(twins.loss(false, false));
    twins.step_together();
  }
  SUCCEED();
}

TEST_CASE("passes are compared again after some ranks have run out of batches") {
  Twins twins({.data = {.even_batches = false}, .ddp = {.bucket_cap_mb = tiny_bucket}});
  {
    auto joined = twins.accelerator.join_uneven_inputs({twins.first, twins.second});
    for (int step = 0; step <= twins.accelerator.process_index(); ++step) twins.step_together();
  }
  for (int pass = 0; pass < 2; ++pass) twins.step_together();
  SUCCEED();
}

TEST_CASE("parameters that some ranks leave out get the mean, however many models one pass reaches") {
  for (const int models : {1, 2, 20, 70}) {
    for (const int stage : {0, 2}) {
      for (const bool plain : {false, true}) {
        CAPTURE(models, stage, plain);
        Accelerator accelerator(
            {.ddp = {.bucket_cap_mb = tiny_bucket, .find_unused_parameters = true}, .zero = {.stage = stage}});
        const int rank = accelerator.process_index(), ranks = accelerator.num_processes();
        std::vector<torch::nn::Linear> nets;
        std::vector<Model<torch::nn::Linear>> prepared;
        std::vector<at::Tensor> parameters;
        for (int i = 0; i < models; ++i) {
          auto& net = nets.emplace_back(3, 3);
          for (const auto& parameter : net->parameters()) parameter.detach().zero_();
          prepared.push_back(accelerator.prepare(net));
          parameters.insert(parameters.end(), {net->weight, net->bias});
        }
        torch::optim::SGD sgd(parameters, 1);
        auto optimizer = accelerator.prepare(sgd);
        constexpr int passes = 3;
        for (int pass = 0; pass < passes; ++pass) {
          auto loss = at::zeros({}).requires_grad_();
          for (int i = 0; i < models; ++i) {
            const auto& net = nets[static_cast<std::size_t>(i)];
            loss = loss + (i + 1) * (rank + 1) * net->weight.sum();
            if (rank == 0) loss = loss + (i + 1) * net->bias.sum();
          }
          plain ? loss.backward() : accelerator.backward(loss);
          optimizer.step();
          optimizer.zero_grad();
        }
        bool all_are_right = true;
        for (int i = 0; i < models; ++i) {
          const auto& net = nets[static_cast<std::size_t>(i)];
          all_are_right &= at::allclose(net->weight, at::full({3, 3}, -passes * (i + 1) * (ranks + 1) / 2.0));
          all_are_right &= at::allclose(net->bias, at::full({3}, -passes * (i + 1.0) / ranks));
        }
        CHECK(all_are_right);
        accelerator.wait_for_everyone();
      }
    }
  }
}
