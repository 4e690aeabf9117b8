#include "observe/profile/flop_counter.hpp"

#include <ATen/autocast_mode.h>
#include <torch/nn/functional/conv.h>
#include <torch/nn/modules/linear.h>

#include "support/catch.hpp"

using hortator::observe::FlopCounter;

namespace {

template <typename Work>
double flops_in(const Work& work) {
  const FlopCounter counter;
  work();
  return counter.count();
}

at::Tensor learned(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

}  // namespace

TEST_CASE("matrix products count two operations for each product of numbers") {
  CHECK(flops_in([] { at::mm(at::ones({3, 5}), at::ones({5, 7})); }) == 2 * 3 * 5 * 7);
  CHECK(flops_in([] { at::bmm(at::ones({4, 3, 5}), at::ones({4, 5, 7})); }) == 2 * 4 * 3 * 5 * 7);
  CHECK(flops_in([] { at::matmul(at::ones({4, 3, 5}), at::ones({5, 7})); }) == 2 * 4 * 3 * 5 * 7);
  CHECK(flops_in([] { at::matmul(at::ones({3, 5}), at::ones({5})); }) == 2 * 3 * 5);
  CHECK(flops_in([] { at::addmm(at::ones({7}), at::ones({3, 5}), at::ones({5, 7})); }) == 2 * 3 * 5 * 7);
  CHECK(flops_in([] { at::ones({100, 100}).add(1).relu().sum(); }) == 0);
}

TEST_CASE("an operator that calls another counted operator counts once") {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  CHECK(flops_in([] { at::mm(at::ones({3, 5}), at::ones({5, 7})); }) == 2 * 3 * 5 * 7);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
}

TEST_CASE("a backward pass counts the requested gradients") {
  torch::nn::Linear net(64, 32);
  const auto x = at::ones({8, 64});
  const double forward = 2.0 * 8 * 64 * 32;
  CHECK(flops_in([&] { net(x).sum(); }) == forward);
  CHECK(flops_in([&] { net(x).sum().backward(); }) == 2 * forward);
  CHECK(flops_in([&] { net(learned({8, 64})).sum().backward(); }) == 3 * forward);
}

TEST_CASE("all types of convolutions count their kernels' products") {
  namespace nn = torch::nn::functional;
  const auto image = at::ones({2, 6, 9, 11});
  const auto kernel = at::ones({8, 3, 3, 5});  // of two groups
  const auto options = nn::Conv2dFuncOptions().stride(2).padding({1, 2}).groups(2);
  const auto outputs = static_cast<double>(nn::conv2d(image, kernel, options).numel());
  const double forward = 2 * outputs * 3 * 3 * 5;
  CHECK(flops_in([&] { nn::conv2d(image, kernel, options); }) == forward);
  CHECK(flops_in([&] { nn::conv2d(image, kernel.detach().clone().requires_grad_(), options).sum().backward(); }) ==
        2 * forward);
  CHECK(flops_in([&] {
          nn::conv2d(learned({2, 6, 9, 11}), kernel.detach().clone().requires_grad_(), options).sum().backward();
        }) == 3 * forward);
  const auto dilated = nn::Conv2dFuncOptions().dilation({2, 1});
  const auto wide = at::ones({4, 6, 3, 3});
  CHECK(flops_in([&] { nn::conv2d(image, wide, dilated); }) ==
        2 * static_cast<double>(nn::conv2d(image, wide, dilated).numel()) * 6 * 9);
  CHECK(flops_in([] { nn::conv1d(at::ones({2, 3, 10}), at::ones({4, 3, 3})); }) == 2.0 * 2 * 4 * 8 * 3 * 3);

  // Each number of the input meets the whole kernel of its channel.
  const auto up = at::ones({6, 4, 3, 3});
  const double spread = 2.0 * static_cast<double>(image.numel()) * 4 * 9;
  CHECK(flops_in([&] { nn::conv_transpose2d(image, up, nn::ConvTranspose2dFuncOptions().stride(2)); }) == spread);
  CHECK(flops_in([&] {
          nn::conv_transpose2d(image, up.clone().requires_grad_(), nn::ConvTranspose2dFuncOptions().stride(2))
              .sum()
              .backward();
        }) == 2 * spread);
}

TEST_CASE("attention counts both of its products, whichever kernel computes them") {
  const double products = 2.0 * 2 * 4 * 16 * 24 * (8 + 8);
  for (const bool is_fused : {true, false}) {
    const auto work = [&] {
      const auto query = learned({2, 4, 16, 8}), key = learned({2, 4, 24, 8}), value = learned({2, 4, 24, 8});
      if (is_fused) return at::scaled_dot_product_attention(query, key, value);
      return at::matmul(at::matmul(query, key.transpose(-2, -1)).softmax(-1), value);
    };
    INFO(is_fused);
    CHECK(flops_in([&] { work(); }) == products);
    CHECK(flops_in([&] { work().sum().backward(); }) == 3 * products);
  }
}

TEST_CASE("consecutive counters are independent, and nothing is counted without one") {
  const auto product = [] { at::mm(at::ones({2, 2}), at::ones({2, 2})); };
  CHECK(flops_in(product) == 16);
  product();
  CHECK(flops_in([] {}) == 0);
  CHECK(flops_in(product) == 16);
}
