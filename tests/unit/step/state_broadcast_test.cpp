#include "step/state_broadcast.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>

#include "step/moments/optimizer_state.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("all ranks continue with the root's optimizer, which has stepped more often") {
  const auto host = mpi::Communicator::world();
  const int root = host.size() - 1;
  at::manual_seed(1);
  torch::nn::Linear model(3, 2);
  torch::optim::AdamW optimizer(model->parameters(), 1e-2);
  const step::ParameterNames names = {{model->weight.unsafeGetTensorImpl(), "weight"},
                                      {model->bias.unsafeGetTensorImpl(), "bias"}};
  const auto step = [&](double scale) {
    optimizer.zero_grad();
    (model->forward(at::ones({1, 3})).sum() * scale).backward();
    optimizer.step();
  };
  for (int i = 0; i <= host.rank(); ++i) step(host.rank() + 1);  // different on each rank; once on rank 0
  step::broadcast_state(
      host, root, [&] { return step::save_optimizer(optimizer, names); },
      [&](const StateDict& state) { step::load_optimizer(optimizer, names, state); });
  const auto state = step::save_optimizer(optimizer, names);
  CHECK(state.get<std::int64_t>("state/weight/step") == root + 1);
  CHECK(state.get<at::Tensor>("state/bias/exp_avg")[0].item<double>() ==
        Approx((root + 1) * (1 - std::pow(0.9, root + 1))));
}

TEST_CASE("if an object cannot be saved or loaded on one rank, all ranks throw") {
  const auto host = mpi::Communicator::world();
  const int last = host.size() - 1;
  const auto fail = [](const char* what) -> StateDict { throw Error({.what = what}); };
  CHECK_THROWS_WITH(step::broadcast_state(
                        host, 0, [&] { return fail("cannot be saved"); }, [](const StateDict&) {}),
                    ContainsSubstring("cannot be saved"));
  if (last == 0) return;
  CHECK_THROWS_WITH(step::broadcast_state(
                        host, 0, [] { return StateDict(); },
                        [&](const StateDict&) {
                          if (host.rank() == last) fail("cannot be loaded");
                        }),
                    ContainsSubstring("cannot be loaded"));
}
