// Collectives of mixtures of experts: losses of routers over the tokens of all ranks, exchange of tokens, and errors of
// one rank in them.
#include <ATen/ops/arange.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/silu.h>
#include <torch/autograd.h>

#include <hortator/error.hpp>
#include <new>

#include "comm/backends/make_communicator.hpp"
#include "mpi/agree.hpp"
#include "parallel/collectives/differentiable.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/experts/experts_models.hpp"

using namespace hortator;

namespace {

/// A layer whose experts run out of memory on this rank while `fails`.
struct FailingNetImpl : torch::nn::Module {
  explicit FailingNetImpl(const bool& fails) {
    torch::manual_seed(6);
    const auto activation = [&fails](const at::Tensor& x) {
      if (fails) throw std::bad_alloc();
      return at::silu(x);
    };
    experts = register_module("experts",
                              nn::MoE(nn::MoEOptions{.width = 8, .inner = 6, .experts = 12, .activation = activation}));
  }
  at::Tensor forward(const at::Tensor& x) { return experts(x); }
  nn::MoE experts = nullptr;
};
TORCH_MODULE(FailingNet);

/// The sum of the squares of one layer's tokens that count.
double squares_of(const nn::MoE& layer, const at::Tensor& weights) {
  return (at::logsumexp(layer->routing().logits, -1).square() * weights).sum().item<double>();
}

}  // namespace

TEST_CASE("an error of one rank in a loss of routers is thrown by all") {
  Accelerator accelerator;
  test::ExpertNet net;
  auto model = accelerator.prepare(net);
  const test::ExpertBatch batch(1, accelerator.process_index(), accelerator.num_processes());
  model(batch.ids);
  const auto mask = at::ones({accelerator.is_main_process() ? 3 : batch.ids.numel()});
  CHECK_THROWS_WITH(nn::load_balancing_loss(model.module(), mask),
                    ContainsSubstring("load_balancing_loss got a mask of 3 tokens"));
  CHECK_THROWS_WITH(nn::router_z_loss(model.module(), mask), ContainsSubstring("router_z_loss got a mask of 3 tokens"));
  CHECK(nn::load_balancing_loss(model.module()).item<double>() > 0);
}

TEST_CASE("the z-loss is the mean over the tokens of all ranks that count") {
  Accelerator accelerator;
  test::ExpertNet net;
  auto model = accelerator.prepare(net);
  const test::ExpertBatch batch(1, accelerator.process_index(), accelerator.num_processes());
  model(batch.ids);
  const auto mask = at::arange(batch.ids.numel()).lt(3 + 2 * accelerator.process_index()).view(batch.ids.sizes());
  const auto weights = mask.reshape({-1}).to(at::kFloat);
  const auto own = at::tensor(
      {squares_of(net->first, weights) + squares_of(net->second, weights), 2 * weights.sum().item<double>()});
  const auto all = accelerator.reduce(own);
  const auto loss = nn::router_z_loss(model.module(), mask);
  const auto mean = accelerator.reduce(loss.detach(), Reduce::mean).item<double>();
  CHECK(mean == Approx((all[0] / all[1]).item<double>()).epsilon(1e-5));
}

TEST_CASE("memory that runs out on one rank is thrown by all ranks that exchange tokens") {
  for (const int experts : {2, 3, 4}) {
    if (State().num_processes() % experts != 0) continue;
    INFO("experts " << experts);
    Accelerator accelerator({.parallel = {.experts = experts}});
    bool fails = false;
    FailingNet net(fails);
    const auto model = accelerator.prepare(net);
    const auto x = at::arange(48.0).sin().to(at::kFloat).view({6, 8});
    const auto expected = net->forward(x);
    fails = accelerator.is_last_process();
    if (experts == accelerator.num_processes()) CHECK_THROWS_WITH(net->forward(x), ContainsSubstring("std::bad_alloc"));
    fails = false;
    CHECK(at::equal(net->forward(x), expected));
    const auto wrong = x.narrow(1, 0, accelerator.is_main_process() ? 7 : 8);
    if (experts == accelerator.num_processes())
      CHECK_THROWS_WITH(net->forward(wrong), ContainsSubstring("the last one must be its width, 8"));
  }
}

TEST_CASE("rows travel once all ranks have memory for them, forward and backward") {
  const auto world = mpi::Communicator::world();
  const auto over = comm::make_communicator(world, at::kCPU, comm::Checks::off);
  bool fails = false;
  const mpi::AllOrNone together = [&](const auto& allocate) {
    mpi::all_or_none(world, [&] {
      allocate();
      if (fails && world.rank() == world.size() - 1) throw std::bad_alloc();
    });
  };
  const std::vector<std::int64_t> one_each(static_cast<std::size_t>(world.size()), 1);
  const auto rows = at::ones({world.size(), 2}).requires_grad_();
  const auto exchanged = parallel::all_to_all(rows, *over, one_each, one_each, together);
  fails = true;
  CHECK_THROWS_WITH(parallel::all_to_all(rows, *over, one_each, one_each, together),
                    ContainsSubstring("std::bad_alloc"));
  CHECK_THROWS_WITH(torch::autograd::grad({exchanged.sum()}, {rows}), ContainsSubstring("std::bad_alloc"));
}
