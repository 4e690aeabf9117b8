// Optimizers that evaluate the loss several times per step, by a closure.
#include <torch/optim/lbfgs.h>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

constexpr std::int64_t rows_per_rank = 6;

Example<> rows(std::int64_t first, std::int64_t count) {
  const Rows all{.count = first + count, .type = at::kDouble};
  std::vector<at::Tensor> data;
  std::vector<at::Tensor> target;
  for (auto i = first; i < first + count; ++i) {
    data.push_back(all.get(i).data);
    target.push_back(all.get(i).target.sin());
  }
  return {at::stack(data), at::stack(target)};
}

torch::optim::LBFGSOptions line_search_options() {
  return torch::optim::LBFGSOptions(0.5).max_iter(8).line_search_fn("strong_wolfe");
}

Net make_double_net() {
  at::manual_seed(3);
  Net net;
  net->to(at::kDouble);
  return net;
}

}  // namespace

TEST_CASE("LBFGS with a line search takes the same steps on all ranks as on one rank with the joined batch") {
  Accelerator accelerator;
  auto net = make_double_net();
  auto single = make_double_net();
  torch::optim::LBFGS parallel_lbfgs(net->parameters(), line_search_options());
  torch::optim::LBFGS single_lbfgs(single->parameters(), line_search_options());
  auto [model, optimizer] = accelerator.prepare(net, parallel_lbfgs);
  const auto mine = rows(rows_per_rank * accelerator.process_index(), rows_per_rank);
  const auto all = rows(0, rows_per_rank * accelerator.num_processes());
  for (int step = 0; step < 4; ++step) {
    const auto loss = optimizer.step([&] {
      optimizer.zero_grad();
      const auto own = at::mse_loss(model(mine.data), mine.target);
      accelerator.backward(own);
      return own;
    });
    const auto expected = single_lbfgs.step([&] {
      single_lbfgs.zero_grad();
      auto joined = at::mse_loss(single->forward(all.data), all.target);
      joined.backward();
      return joined;
    });
    CHECK(loss.item<double>() == Approx(expected.item<double>()).epsilon(1e-8));
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    CHECK(at::allclose(net->parameters()[i], single->parameters()[i], 1e-7, 1e-9));
}

TEST_CASE("a closure that does not make a whole update is refused on all ranks, with the reason") {
  const auto text_of = [](AcceleratorOptions options, bool accumulates) {
    Accelerator accelerator(options);
    auto net = make_double_net();
    torch::optim::LBFGS lbfgs(net->parameters(), line_search_options());
    auto [model, optimizer] = accelerator.prepare(net, lbfgs);
    if (accumulates) accelerator.set_sync_gradients(false);
    try {
      optimizer.step([&] { return at::ones({}); });
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(text_of({}, false).empty());
  CHECK_THAT(text_of({}, true), ContainsSubstring("not averaged in this micro-step"));
  CHECK_THAT(text_of({.mixed_precision = Precision::fp16}, false), ContainsSubstring("the gradient scaler"));
  if (State().num_processes() != 3)  // four shards cannot be distributed evenly over three ranks
    CHECK_THAT(text_of({.reproducible = true, .virtual_shards = 4}, false), ContainsSubstring("reproducible"));
}
