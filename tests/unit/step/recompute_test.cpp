// Gradient checkpointing: activations are recomputed for backward instead of being kept.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <hortator/training/recompute.hpp>

#include <cstdint>
#include <hortator/error.hpp>

#include "step/precision/autocast_state.hpp"
#include "step/recompute/saved_tensor_scope.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

using Tensors = std::vector<at::Tensor>;

/// Counts storages that are alive, without keeping them.
class StorageWatch {
 public:
  at::Tensor operator()(const at::Tensor& tensor) {
    storages_.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(tensor.storage().unsafeGetStorageImpl()));
    return tensor;
  }
  std::size_t alive() const {
    std::size_t count = 0;
    for (const auto& storage : storages_) count += storage.expired() ? 0 : 1;
    return count;
  }
  std::size_t seen() const { return storages_.size(); }

 private:
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
};

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(double dropout = 0.3) {
    up = register_module("up", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    drop = register_module("drop", torch::nn::Dropout(dropout));
    down = register_module("down", torch::nn::Linear(8, 4));
  }
  at::Tensor forward(const at::Tensor& x) {
    ++runs;
    auto h = watch(at::gelu(norm(up(x))));
    h = watch(drop(h));
    return x + down(h);
  }
  torch::nn::Linear up{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout drop{nullptr};
  torch::nn::Linear down{nullptr};
  StorageWatch watch;
  int runs = 0;
};
TORCH_MODULE(Block);

/// Has the same weights and random numbers each time it is constructed.
std::vector<Block> blocks(int count) {
  at::manual_seed(3);
  std::vector<Block> made;
  for (int i = 0; i < count; ++i) made.emplace_back();
  return made;
}

at::Tensor input(bool requires_grad = false) {
  return (at::arange(24, at::kFloat).view({6, 4}) / 10).requires_grad_(requires_grad);
}

Tensors gradients_of(const std::vector<Block>& made) {
  Tensors all;
  for (const auto& block : made) {
    for (const auto& parameter : block->parameters()) all.push_back(parameter.grad());
    for (const auto& buffer : block->buffers()) all.push_back(buffer.clone());
  }
  return all;
}

bool all_equal(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() || !at::equal(a[i], b[i])) return false;
  }
  return true;
}

/// Gradients, buffers and the next random number of a run over two blocks.
template <typename Apply>
Tensors run(const Apply& apply, bool input_learns = false) {
  auto made = blocks(2);
  auto x = input(input_learns);
  auto h = x;
  for (auto& block : made) h = apply(block, h);
  h.square().sum().backward();
  auto results = gradients_of(made);
  if (input_learns) results.push_back(x.grad());
  results.push_back(at::rand({3}));
  return results;
}

const auto plainly = [](Block& block, const at::Tensor& x) { return block(x); };
const auto recomputed = [](Block& block, const at::Tensor& x) { return recompute(block, x); };

}  // namespace

TEST_CASE("gradients, running statistics and random numbers bitwise equal those of the plain run") {
  for (const bool input_learns : {false, true}) {
    CHECK(all_equal(run(recomputed, input_learns), run(plainly, input_learns)));
    // A callable, a borrowed module and a shared_ptr.
    const auto by_pointer = [](Block& block, const at::Tensor& x) { return recompute(block.ptr(), x); };
    const auto by_object = [](Block& block, const at::Tensor& x) { return recompute(*block, x); };
    CHECK(all_equal(run(by_pointer, input_learns), run(plainly, input_learns)));
    CHECK(all_equal(run(by_object, input_learns), run(plainly, input_learns)));
  }
}

TEST_CASE("activations within the call are not kept, and recomputed once") {
  auto block = blocks(1)[0];
  const auto y = recompute(block, input());
  CHECK(block->watch.seen() == 2);
  CHECK(block->watch.alive() == 0);
  y.sum().backward();
  CHECK(block->runs == 2);
  CHECK(block->watch.alive() == 0);
  auto kept = blocks(1)[0];
  const auto z = kept(input());
  CHECK(kept->watch.alive() == 1);  // the result of dropout: the counter works
}

TEST_CASE("in a chain, only one call's activations exist at a time") {
  std::size_t most = 0;
  StorageWatch watch;
  const auto layer = [&](const at::Tensor& x) {
    auto h = x;
    for (int i = 0; i < 3; ++i) {
      h = watch(at::tanh(h));
      most = std::max(most, watch.alive());
    }
    return h * 1;
  };
  auto h = at::ones({5}).requires_grad_();
  for (int i = 0; i < 6; ++i) h = recompute(layer, h);
  h.sum().backward();
  CHECK(most <= 4);
  CHECK(watch.seen() == 6 * 3 + 6 * 2);  // each second run ends at its last saved tensor
}

TEST_CASE("the second run ends when backward has all it needs") {
  int tails = 0;
  const auto layer = [&](const at::Tensor& x) {
    auto y = at::tanh(x) + 1;
    ++tails;
    return y;
  };
  auto x = input(true);
  recompute(layer, x).sum().backward();
  CHECK(tails == 1);
  CHECK(x.grad().defined());
}

TEST_CASE("arguments and results of several types, with and without gradients") {
  auto a = input(true);
  const auto b = input() + 1;
  const auto index = at::tensor({0, 2}, at::kLong);
  const auto pick = [](const at::Tensor& x, const at::Tensor& y, const at::Tensor& rows, double scale,
                       const Tensors& more) {
    const auto z = (x * y).index_select(0, rows) * scale;
    return std::make_tuple(at::tanh(z), z.sum() * more[0], 7);
  };
  const Tensors more = {at::full({}, 2.0)};
  auto loss_of = [&](const auto& results) { return std::get<0>(results).sum() + std::get<1>(results); };
  loss_of(pick(a, b, index, 0.5, more)).backward();
  const auto expected = a.grad().clone();
  a.mutable_grad().reset();
  const auto results = recompute(pick, a, b, index, 0.5, more);
  CHECK(std::get<2>(results) == 7);
  loss_of(results).backward();
  CHECK(at::equal(a.grad(), expected));
}

TEST_CASE("calls nest, and a nested call is recomputed within the outer one") {
  const auto nested = [](Block& block, const at::Tensor& x) {
    return recompute([&block](const at::Tensor& h) { return recompute(block, at::tanh(h)).square(); }, x);
  };
  const auto plain = [](Block& block, const at::Tensor& x) { return block(at::tanh(x)).square(); };
  CHECK(all_equal(run(nested), run(plain)));
  CHECK(all_equal(run(nested, true), run(plain, true)));

  auto block = blocks(1)[0];
  StorageWatch watch;
  const auto y = recompute([&](const at::Tensor& h) { return recompute(block, watch(at::tanh(h))); }, input());
  CHECK(watch.alive() == 0);  // the outer call recomputes the inner call's argument
  y.sum().backward();
  CHECK(watch.alive() == 0);
}

TEST_CASE("evaluation, and no gradients") {
  auto block = blocks(1)[0];
  block->eval();
  recompute(block, input()).sum().backward();
  const auto gradient = block->up->weight.grad().clone();
  block->zero_grad();
  block(input()).sum().backward();
  CHECK(at::equal(block->up->weight.grad(), gradient));

  const at::NoGradGuard no_grad;
  const int before = block->runs;
  CHECK_FALSE(recompute(block, input(true)).requires_grad());
  CHECK(block->runs == before + 1);
}

TEST_CASE("the second run has the autocast settings of the first") {
  const auto cast = [](const auto& apply) {
    return [apply](Block& block, const at::Tensor& x) {
      auto state = step::AutocastState::current();
      at::autocast::set_autocast_enabled(at::kCPU, true);
      at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
      const auto here = step::AutocastState::current();
      state.apply();
      const step::AutocastScope scope(here);
      return apply(block, x).to(at::kFloat);
    };
  };
  const auto expected = run(cast(plainly));
  CHECK(all_equal(run(cast(recomputed)), expected));
  CHECK_FALSE(all_equal(run(plainly), expected));
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST_CASE("autograd::grad, retained graphs and double backward work") {
  auto block = blocks(1)[0];
  block->drop->eval();
  auto x = input(true);
  const auto weight = block->up->weight;
  const auto plain = torch::autograd::grad({block(x).square().sum()}, {weight, x});
  const auto y = recompute(block, x).square().sum();
  CHECK(all_equal(torch::autograd::grad({y}, {weight, x}, {}, /*retain_graph=*/true), plain));
  CHECK(all_equal(torch::autograd::grad({y}, {weight, x}, {}, /*retain_graph=*/true), plain));
  CHECK(block->runs == 4);
  CHECK(all_equal(torch::autograd::grad({y}, {weight, x}), plain));
  CHECK_THROWS_WITH(torch::autograd::grad({y}, {weight}), ContainsSubstring("second time"));

  const auto twice = [&](const at::Tensor& loss) {
    const auto first = torch::autograd::grad({loss}, {x}, {}, true, /*create_graph=*/true)[0];
    return torch::autograd::grad({first.square().sum()}, {weight});
  };
  CHECK(all_equal(twice(recompute(block, x).square().sum()), twice(block(x).square().sum())));
}

TEST_CASE("the call may contain a backward pass") {
  const auto penalty = [](const at::Tensor& x) {
    const auto y = at::tanh(x).square().sum();
    const auto slope = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
    return y + slope.square().sum();
  };
  auto x = input(true);
  penalty(x).backward();
  const auto expected = x.grad().clone();
  x.mutable_grad().reset();
  recompute(penalty, x).backward();
  CHECK(at::equal(x.grad(), expected));
}

TEST_CASE("is_recomputing is true in the second run only") {
  std::vector<bool> seen;
  auto x = input(true);
  const auto layer = [&](const at::Tensor& h) {
    seen.push_back(is_recomputing());
    return at::tanh(h);
  };
  recompute(layer, x).sum().backward();
  CHECK(seen == std::vector<bool>{false, true});
  CHECK_FALSE(is_recomputing());
}

TEST_CASE("a second run that differs throws instead of giving a wrong gradient") {
  auto x = input(true);
  int runs = 0;
  const auto other_shape = [&](const at::Tensor& h) { return at::tanh(h.narrow(0, 0, ++runs)).sum(); };
  CHECK_THROWS_WITH(recompute(other_shape, x).backward(),
                    ContainsSubstring("saved for backward is Float [2, 4]") && ContainsSubstring("was Float [1, 4]"));
  runs = 0;
  const auto fewer = [&](const at::Tensor& h) { return ++runs == 1 ? at::tanh(at::tanh(h)).sum() : at::tanh(h).sum(); };
  CHECK_THROWS_WITH(recompute(fewer, x).backward(), ContainsSubstring("the second run saved 1 tensor"));
  const auto in_place = [&](const at::Tensor& h) { return at::tanh(h.mul_(2)).sum(); };
  CHECK_THROWS_WITH(recompute(in_place, input()), ContainsSubstring("an argument was changed in place"));
  CHECK_FALSE(step::SavedTensorScope::current());

  const auto spoils = [&](const at::Tensor& h) { return at::exp(at::tanh(h).mul_(2)).sum(); };
  CHECK_THROWS_WITH(recompute(spoils, x).backward(), ContainsSubstring("changed in place after it was saved"));

  auto block = blocks(1)[0];
  const auto y = recompute(block, x).sum();
  {
    const at::NoGradGuard no_grad;
    block->down->weight.mul_(2);
  }
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("a parameter was changed between forward and backward"));
}

TEST_CASE("changing an argument after the call is autograd's own error") {
  auto x = input();
  auto block = blocks(1)[0];
  const auto y = recompute(block, x).sum();
  x.add_(1);
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("modified by an inplace operation"));
}

TEST_CASE("an exception in the second run propagates from backward and restores the state") {
  auto x = input(true);
  int runs = 0;
  const auto fails = [&](const at::Tensor& h) {
    if (++runs == 2) throw std::runtime_error("not twice");
    return at::tanh(at::dropout(h, 0.5, true)).sum();
  };
  at::manual_seed(5);
  const auto y = recompute(fails, x);
  const auto next = at::rand({2});
  at::manual_seed(5);
  const auto again = recompute([](const at::Tensor& h) { return at::dropout(h, 0.5, true).sum(); }, x);
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("not twice"));
  CHECK_FALSE(is_recomputing());
  CHECK_FALSE(step::SavedTensorScope::current());
  CHECK(at::equal(at::rand({2}), next));
}
