// Modules that move between the host and a device.
#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/cpu_offload_hook.hpp>
#include <hortator/bigmodel/layerwise_casting.hpp>
#include <hortator/bigmodel/module_devices.hpp>

#include "support/catch.hpp"
#include "support/far_device.hpp"
#include "unit/paging/fixtures.hpp"

using namespace hortator;
using test::far_device;
using testing::same_bits;

namespace {

struct MovingNetImpl : torch::nn::Module {
  MovingNetImpl() { register_module("linear", linear); }
  at::Tensor forward(const at::Tensor& x) { return at::tanh(linear(x)); }
  torch::nn::Linear linear{8, 8};
};
TORCH_MODULE(MovingNet);

bool is_far(const torch::nn::Module& module) { return module.parameters().front().device() == far_device; }

}  // namespace

TEST_CASE("a module that is made on the far device has the values of one that is made on the host", "[far]") {
  at::manual_seed(8);
  const MovingNet usual;
  at::manual_seed(8);
  const auto net = init_on_device(far_device, [] { return MovingNet(); });
  CHECK(is_far(*net));
  CHECK(same_bits(net->linear->weight.cpu(), usual->linear->weight));
}

TEST_CASE("models with hooks are on the far device one at a time, and compute as on the host", "[far]") {
  const at::NoGradGuard no_grad;
  MovingNet encoder, decoder;
  const auto input = at::linspace(-1, 1, 16).view({2, 8});
  const auto expected = decoder->forward(encoder->forward(input));
  encoder->to(far_device);
  auto encode = cpu_offload_with_hook(encoder, far_device);
  auto decode = cpu_offload_with_hook(decoder, far_device, encode.hook());
  CHECK_FALSE(is_far(*encoder));
  const auto features = encode(input);
  CHECK(is_far(*encoder));
  const auto result = decode(features);
  CHECK(is_far(*decoder));
  CHECK_FALSE(is_far(*encoder));
  CHECK(same_bits(result.cpu(), expected));
  decode.hook().offload();
  CHECK_FALSE(is_far(*decoder));
}

TEST_CASE("an aligned module is on the far device, and what is written to it there stays", "[far]") {
  const at::NoGradGuard no_grad;
  MovingNet net;
  const auto* home = net->linear->weight.const_data_ptr<float>();
  const auto expected = net->linear->weight + 1;
  {
    auto aligned = align_module_device(net, far_device);
    CHECK(is_far(*net));
    net->linear->weight.add_(1);
  }
  CHECK_FALSE(is_far(*net));
  CHECK(net->linear->weight.const_data_ptr<float>() == home);
  CHECK(same_bits(net->linear->weight, expected));
}

TEST_CASE("weights on the far device are cast from a smaller type there", "[far]") {
  const at::NoGradGuard no_grad;
  MovingNet net;
  const auto rounded = net->linear->weight.to(at::kBFloat16).to(at::kFloat);
  const auto input = at::linspace(-1, 1, 16).view({2, 8});
  const auto expected = at::tanh(at::linear(input, rounded, net->linear->bias));
  net->to(far_device);
  auto casting = attach_layerwise_casting_hooks(net, at::kBFloat16);
  for (int pass = 0; pass < 2; ++pass) CHECK(same_bits(net->forward(input.to(far_device)).cpu(), expected));
}
