#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/cpu_offload_hook.hpp>
#include <hortator/bigmodel/module_devices.hpp>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/error.hpp>
#include <string>

#include "fixtures.hpp"
#include "support/catch.hpp"

namespace hortator {
namespace {

using testing::same_bits;

torch::nn::Sequential small_net() { return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3)); }

}  // namespace

TEST_CASE("a module that is made on a device has the values of one that is made as usual", "[devices]") {
  at::manual_seed(8);
  const auto usual = small_net();
  at::manual_seed(8);
  const auto net = init_on_device(at::kCPU, small_net);
  for (std::size_t i = 0; i < usual->parameters().size(); ++i)
    CHECK(same_bits(net->parameters()[i], usual->parameters()[i]));
  CHECK(same_bits(net->buffers()[1], usual->buffers()[1]));
  CHECK(net->parameters()[0].is_leaf());
  CHECK(net->parameters()[0].requires_grad());
  CHECK_THROWS_WITH(init_on_device(at::kMeta, small_net), ContainsSubstring("init_empty_weights"));
  auto ordinary = small_net();
  CHECK_THROWS_WITH(align_module_device(ordinary, at::Device(at::kMeta)), ContainsSubstring("the meta device"));
  CHECK(same_bits(ordinary->buffers()[1], usual->buffers()[1]));
}

TEST_CASE("offloaded parameters of an aligned module are in memory, and cannot move", "[devices]") {
  auto net = small_net();
  const auto weight = net->parameters()[0].detach().clone();
  auto offload = disk_offload(net, testing::folder("aligned"), {.page_bytes = 64});
  {
    auto aligned = align_module_device(net);
    const auto* values = net->parameters()[0].const_data_ptr<float>();
    CHECK(values[5] == weight.const_data_ptr<float>()[5]);
  }
  CHECK_THROWS_WITH(align_module_device(net, c10::Device(at::kMeta)),
                    ContainsSubstring("'0.weight' was to be on meta") && ContainsSubstring("it is offloaded"));
}

TEST_CASE("models of a pipeline take turns on the device", "[devices]") {
  std::string moves;
  const auto mover = [&](const char* name) {
    return [&moves, name](c10::Device to) { moves += name + (to.is_cpu() ? std::string("-") : std::string("+")); };
  };
  CpuOffloadHook first(mover("a"), at::kMeta, {});
  CpuOffloadHook second(mover("b"), at::kMeta, first);
  CHECK(moves == "a-b-");
  first.load();
  second.load();
  CHECK(moves == "a-b-a+a-b+");
  second.offload();
  second.remove();
  second.load();
  CHECK(moves == "a-b-a+a-b+b-a-");
  CHECK(second.device() == at::Device(at::kMeta));
}

}  // namespace hortator
