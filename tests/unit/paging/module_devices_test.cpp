#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <hortator/bigmodel/cpu_offload_hook.hpp>
#include <hortator/bigmodel/module_devices.hpp>
#include <hortator/bigmodel/offload.hpp>
#include <hortator/error.hpp>
#include <hortator/models/model.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"

namespace hortator {
namespace {

using testing::same_bits;

torch::nn::Sequential small_net() { return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3)); }

/// Returns the tensors of its arguments.
struct Listener : torch::nn::Module {
  std::vector<at::Tensor> forward(const models::ModelInputs& inputs, const std::optional<at::Tensor>& maybe,
                                  const std::vector<at::Tensor>& list, const at::Tensor& x) {
    return {inputs.input_ids, *maybe, list.at(0), x};
  }
};

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
  first.load();
  second.remove();
  second.load();
  second.offload();
  CHECK(moves == "a-b-a+a-b+b-a+");
  CHECK(second.was_removed());
  CHECK_FALSE(first.was_removed());
  CHECK(second.device() == at::Device(at::kMeta));
}

TEST_CASE("tensors in all arguments of a model with a hook are copied to its device, until the hook is removed",
          "[devices]") {
  const models::ModelInputs inputs{.input_ids = at::ones({1})};
  std::vector<at::Tensor> list = {at::ones({2})};
  auto called = cpu_offload_with_hook(std::make_shared<Listener>(), at::kMeta);
  const auto all_are = [](const std::vector<at::Tensor>& tensors, c10::DeviceType type) {
    return std::ranges::all_of(tensors, [&](const auto& tensor) { return tensor.device().type() == type; });
  };
  CHECK(all_are(called(inputs, std::optional(at::ones({3})), list, at::ones({4})), at::kMeta));
  CHECK(inputs.input_ids.is_cpu());
  CHECK(list[0].is_cpu());
  called.hook().remove();
  CHECK(all_are(called(inputs, std::optional(at::ones({3})), list, at::ones({4})), at::kCPU));
}

TEST_CASE("a variable that a model with a hook changes is passed on as it is", "[devices]") {
  struct Counter : torch::nn::Module {
    bool forward(const at::Tensor& x, std::vector<at::Tensor>& seen) {
      seen.push_back(x);
      return x.is_meta();
    }
  };
  auto called = cpu_offload_with_hook(std::make_shared<Counter>(), at::kMeta);
  auto x = at::ones({1});
  std::vector<at::Tensor> seen = {x};
  CHECK(called(x, seen));
  CHECK(seen.size() == 2);
  CHECK(seen[0].is_cpu());
}

}  // namespace hortator
