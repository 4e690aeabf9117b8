// Checks of divided experts: gradients that are not finite, replicas that differ, and options that are refused.
#include <torch/optim/lbfgs.h>

#include <hortator/error.hpp>
#include <limits>

#include "accelerator/training/training.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "unit/accelerator/experts/experts_course.hpp"

using namespace hortator;
using test::divided_by;
using test::divisions;
using test::train;

namespace {

at::Tensor loss_of(auto& model, const test::ExpertBatch& batch) {
  return test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean);
}

/// Whether weights, experts or others, are finite on all ranks.
bool all_finite(Accelerator& accelerator, const torch::nn::Module& net) {
  const parallel::PartsOnly each_rank_has;
  auto finite = at::ones({}, at::kFloat);
  for (const auto& parameter : net.parameters()) finite.mul_(at::isfinite(parameter.detach()).all());
  return accelerator.reduce(finite, Reduce::min).item<double>() == 1;
}

}  // namespace

TEST_CASE("a gradient of one rank's experts that is not finite skips the update on all ranks, in every precision") {
  for (const int experts : divisions()) {
    for (const auto precision : {Precision::no, Precision::bf16, Precision::fp16}) {
      INFO("experts " << experts << ", " << to_string(precision));
      auto options = divided_by(experts);
      options.mixed_precision = precision;
      options.protection.on_nonfinite = OnNonfinite::skip;
      options.grad_scaler.init_scale = 64;
      Accelerator accelerator(options);
      test::ExpertNet net;
      torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
      auto [model, optimizer] = accelerator.prepare(net, sgd);
      const auto& data = accelerator::Training::of(accelerator).data();
      for (int step = 0; step < 6; ++step) {
        const bool spoils = step % 3 == 1;
        accelerator.backward(loss_of(model, {step, data.index(), data.size()}));
        if (spoils && accelerator.process_index() == step % accelerator.num_processes()) {
          const parallel::PartsOnly here;
          net->first->experts->down_proj.mutable_grad().view({-1})[0] = std::numeric_limits<float>::infinity();
        }
        optimizer.step();
        optimizer.zero_grad();
        CHECK(optimizer.step_was_skipped() == spoils);
      }
      CHECK(all_finite(accelerator, *net));
    }
  }
}

TEST_CASE("if the replicas of one rank's experts differ, check_replicas_every throws on all ranks") {
  if (State().num_processes() != 4) return;
  Accelerator accelerator({.ddp = {.check_replicas_every = 2}, .parallel = {.experts = 2}});
  test::ExpertNet net;
  auto model = accelerator.prepare(net);
  const auto& data = accelerator::Training::of(accelerator).data();
  if (accelerator.is_last_process()) {
    const at::NoGradGuard no_grad;
    const parallel::PartsOnly here;
    net->second->experts->down_proj.add_(1);
  }
  CHECK_NOTHROW(accelerator.backward(loss_of(model, {0, data.index(), data.size()})));
  CHECK_THROWS_WITH(accelerator.backward(loss_of(model, {1, data.index(), data.size()})),
                    ContainsSubstring("second.experts.down_proj"));
  accelerator.wait_for_everyone();
}

TEST_CASE("ranks that hold the same experts hold the same values") {
  for (const int experts : divisions()) {
    auto options = divided_by(experts);
    options.ddp.check_replicas_every = 1;
    CHECK_NOTHROW(train({.options = options, .steps = 3}));
  }
}

TEST_CASE("experts that cannot be divided are refused on all ranks, with the reason") {
  const int ranks = State().num_processes();
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = ranks + 1}}), ContainsSubstring("parallel.experts is"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 0}}), ContainsSubstring("parallel.experts is 0"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.tensor = 2, .experts = 2}}), ContainsSubstring("parallel.tensor is 2"));
  CHECK_THROWS_WITH(Accelerator({.parallel = {.experts = 2}, .reproducible = true}), ContainsSubstring("reproducible"));
  if (ranks > 1) {
    const AcceleratorOptions mine = State().is_main_process() ? divided_by(ranks) : AcceleratorOptions();
    CHECK_THROWS_WITH(Accelerator(mine), ContainsSubstring("experts"));
  }
  for (const int experts : divisions()) {
    Accelerator accelerator(divided_by(experts));
    test::Net without;
    CHECK_THROWS_WITH(accelerator.prepare(without), ContainsSubstring("the model has no experts"));
    test::ExpertNet odd(experts + 1);
    CHECK_THROWS_WITH(accelerator.prepare(odd), ContainsSubstring("use a divisor of the number of experts"));
    test::ExpertNet net;
    torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1));
    auto [model, optimizer] = accelerator.prepare(net, lbfgs);
    const test::ExpertBatch batch(0, 0, 1);
    const auto loss = [&, &model = model] {
      return test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean);
    };
    CHECK_THROWS_WITH(optimizer.step(loss), ContainsSubstring("parallel.experts"));
    CHECK_THROWS_WITH(LocalSGD(accelerator, model, {}), ContainsSubstring("parallel.experts"));
    CHECK_THROWS_WITH(accelerator.join_uneven_inputs({model}), ContainsSubstring("parallel.experts"));
  }
}
