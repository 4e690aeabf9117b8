// Losses that reach other models on one rank than on the others.
#include <torch/nn/modules/linear.h>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

constexpr double bucket_each = 1e-9;  // MiB: every gradient is reduced on its own, in the middle of backward

at::Tensor ones() { return at::ones({2, 3}); }

// Alike, so that nothing but their names tells their gradients apart.
struct Twins {
  explicit Twins(AcceleratorOptions options)
      : accelerator(std::move(options)), first(accelerator.prepare(a)), second(accelerator.prepare(b)) {}
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
};

}  // namespace

TEST_CASE("a loss that reaches one model here and its twin there is an error on all ranks, which names both") {
  for (const int stage : {0, 2}) {
    for (const int passes_before : {0, 2}) {
      for (const bool plain : {false, true}) {
        CAPTURE(stage, passes_before, plain);
        Twins twins({.ddp = {.bucket_cap_mb = bucket_each, .find_unused_parameters = true}, .zero = {.stage = stage}});
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

TEST_CASE("a rank whose loss misses the model does not leave the others waiting") {
  for (const int passes_before : {0, 2}) {
    CAPTURE(passes_before);
    Twins twins({.ddp = {.bucket_cap_mb = bucket_each}});
    if (twins.accelerator.num_processes() == 1) return;
    for (int pass = 0; pass < passes_before; ++pass) twins.step_together();
    const bool uses = !twins.accelerator.is_last_process();
    CHECK_THROWS_WITH(twins.accelerator.backward(twins.loss(uses, uses)),
                      ContainsSubstring("Backward reached model 0, model 1 on rank 0, and none on rank " +
                                        std::to_string(twins.accelerator.num_processes() - 1)));
  }
}

TEST_CASE("gradients of models that ranks use in different orders are noticed in the pass after") {
  Twins twins({.ddp = {.bucket_cap_mb = bucket_each}});
  if (twins.accelerator.num_processes() == 1) return;
  twins.step_together();
  const auto x = ones();
  if (twins.accelerator.process_index() == 0) {
    const auto begun = twins.first(x).sum();
    twins.accelerator.backward(begun + twins.second(x).sum());
  } else {
    const auto begun = twins.second(x).sum();
    twins.accelerator.backward(begun + twins.first(x).sum());
  }
  CHECK_THROWS_WITH(twins.accelerator.backward(twins.loss(true, true)), ContainsSubstring("in different orders"));
}

TEST_CASE("models that all ranks leave out, and losses of no model at all, are nobody's error") {
  Twins twins({.ddp = {.bucket_cap_mb = bucket_each}});
  for (int pass = 0; pass < 3; ++pass) {
    twins.accelerator.backward(twins.loss(true, false));
    twins.accelerator.backward(twins.loss(false, true));
    twins.accelerator.backward(twins.loss(false, false));
    twins.step_together();
  }
  SUCCEED();
}

TEST_CASE("after ranks have run out of batches the passes of all compare again") {
  Twins twins({.data = {.even_batches = false}, .ddp = {.bucket_cap_mb = bucket_each}});
  {
    auto joined = twins.accelerator.join_uneven_inputs({twins.first, twins.second});
    for (int step = 0; step <= twins.accelerator.process_index(); ++step) twins.step_together();
  }
  for (int pass = 0; pass < 2; ++pass) twins.step_together();
  SUCCEED();
}
