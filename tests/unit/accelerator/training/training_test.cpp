#include "support/catch.hpp"
#include "support/differences.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Net;
using test::Rows;

namespace {

// One rank with the joined batch, in bare LibTorch.
void train_single(Net net, int ranks, int steps, at::ScalarType type) {
  torch::optim::AdamW optimizer(net->parameters(), 1e-2);
  const Rows rows{.count = 8L * ranks, .type = type};
  for (int step = 0; step < steps; ++step) {
    std::vector<at::Tensor> data;
    std::vector<at::Tensor> target;
    for (std::int64_t i = 0; i < 4L * ranks; ++i) {
      const auto row = rows.get((step % 2) * 4L * ranks + i);
      data.push_back(row.data);
      target.push_back(row.target);
    }
    optimizer.zero_grad();
    at::mse_loss(net->forward(at::stack(data)), at::stack(target)).backward();
    optimizer.step();
  }
}

void train_parallel(Accelerator& accelerator, Net net, int steps, at::ScalarType type, bool plain_backward) {
  torch::optim::AdamW adamw(net->parameters(), 1e-2);
  auto [model, optimizer, loader] = accelerator.prepare(
      net, adamw, data_loader(Rows{.count = 8L * accelerator.num_processes(), .type = type}, {.batch_size = 4}));
  int done = 0;
  while (done < steps) {
    for (auto& batch : loader) {
      auto loss = at::mse_loss(model(batch.data), batch.target);
      if (plain_backward) {
        loss.backward();
      } else {
        accelerator.backward(loss);
      }
      optimizer.step();
      optimizer.zero_grad();
      ++done;
    }
  }
}

double largest_difference(const Net& a, const Net& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a->parameters().size(); ++i) {
    const auto theirs = b->parameters()[i];
    largest = hortator::test::larger(
        largest, ((a->parameters()[i] - theirs).abs() / theirs.abs().clamp_min(0.1)).max().item<double>());
  }
  return largest;
}

}  // namespace

TEST_CASE("training over ranks equals one rank with the joined batch") {
  for (const bool plain_backward : {false, true}) {
    for (const auto& [type, tolerance] : {std::pair(at::kFloat, 1e-5), std::pair(at::kDouble, 1e-10)}) {
      Accelerator accelerator;
      at::manual_seed(5);
      Net single;
      single->to(type);
      at::manual_seed(5);
      Net parallel;
      parallel->to(type);
      train_single(single, accelerator.num_processes(), 6, type);
      train_parallel(accelerator, parallel, 6, type, plain_backward);
      CHECK(largest_difference(parallel, single) < tolerance);
    }
  }
}

TEST_CASE("two prepared models are trained one at a time") {
  Accelerator accelerator;
  Net a;
  Net b;
  torch::optim::SGD sgd_a(a->parameters(), 0.1);
  torch::optim::SGD sgd_b(b->parameters(), 0.1);
  auto [model_a, model_b, optimizer_a, optimizer_b] = accelerator.prepare(a, b, sgd_a, sgd_b);
  const auto x = at::full({2, 3}, accelerator.process_index() + 1.0);
  const auto before = b->out->weight.detach().clone();
  for (int step = 0; step < 3; ++step) {
    accelerator.backward(model_a(x).sum());
    optimizer_a.step();
    optimizer_a.zero_grad();
  }
  CHECK(at::equal(b->out->weight, before));
  accelerator.backward(model_b(model_b(x).expand({2, 3})).sum());
  optimizer_b.step();
  CHECK_FALSE(at::equal(b->out->weight, before));
  const auto all = accelerator.gather(b->out->weight.detach().view({1, -1}));
  for (std::int64_t rank = 0; rank < all.size(0); ++rank) CHECK(at::equal(all[rank], all[0]));
}

TEST_CASE("a frozen parameter needs no gradient; an unused one is an error on all ranks that names it") {
  Accelerator accelerator;
  Net frozen;
  frozen->hidden->weight.requires_grad_(false);
  auto model = accelerator.prepare(frozen);
  accelerator.backward(model(at::ones({2, 3})).sum());
  CHECK_FALSE(frozen->hidden->weight.grad().defined());
  CHECK(frozen->hidden->bias.grad().defined());

  if (accelerator.num_processes() == 1) return;
  Net forgotten;
  auto partly = accelerator.prepare(forgotten);
  CHECK_THROWS_WITH(accelerator.backward(partly->hidden(at::ones({2, 3})).sum()),
                    ContainsSubstring("gave no gradient to"));
}
