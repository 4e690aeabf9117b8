#include "bigmodel/device_map.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("placements parse and print, and are ordered as they are filled") {
  CHECK(DevicePlacement::parse("0") == DevicePlacement::cuda(0));
  CHECK(DevicePlacement::parse("cuda:3") == DevicePlacement::cuda(3));
  CHECK(DevicePlacement::parse("cpu") == DevicePlacement::cpu());
  CHECK(DevicePlacement::parse("disk") == DevicePlacement::disk());
  for (const auto* name : {"", "gpu", "cuda:", "cuda:-1", "-1", "1.5", "99999999999999"})
    CHECK_THROWS_WITH(DevicePlacement::parse(name), ContainsSubstring("Invalid device placement"));
  CHECK_THROWS_AS(DevicePlacement::cuda(-1), UsageError);
  CHECK(DevicePlacement::cuda(1) < DevicePlacement::cuda(2));
  CHECK(DevicePlacement::cuda(7) < DevicePlacement::cpu());
  CHECK(DevicePlacement::cpu() < DevicePlacement::disk());
  CHECK(text::concat(DevicePlacement::cuda(1), " ", DevicePlacement::cpu(), " ", DevicePlacement::disk()) ==
        "cuda:1 cpu disk");
  CHECK_THROWS_WITH(DevicePlacement::parse("tpu"), ContainsSubstring("'tpu'") && ContainsSubstring("on purpose") &&
                                                       ContainsSubstring("a CUDA device, cpu or disk"));
}

TEST_CASE("an entry holds for everything below it, and the nearest entry counts") {
  const DeviceMap map = {
      {"", DevicePlacement::disk()}, {"a", DevicePlacement::cpu()}, {"a.b", DevicePlacement::cuda(0)}};
  CHECK(*bigmodel::placement_in(map, "a.b.weight") == DevicePlacement::cuda(0));
  CHECK(*bigmodel::placement_in(map, "a.bc") == DevicePlacement::cpu());
  CHECK(*bigmodel::placement_in(map, "ab") == DevicePlacement::disk());
  CHECK(bigmodel::placement_in({{"a", DevicePlacement::cpu()}}, "ab") == nullptr);
}

TEST_CASE("check_device_map names unplaced tensors and unknown names") {
  torch::nn::Sequential model(torch::nn::Linear(2, 3), torch::nn::Linear(3, 2));
  CHECK_NOTHROW(check_device_map(*model, {{"", DevicePlacement::cpu()}}));
  CHECK_NOTHROW(check_device_map(
      *model,
      {{"0", DevicePlacement::cpu()}, {"1.weight", DevicePlacement::disk()}, {"1.bias", DevicePlacement::cpu()}}));
  CHECK_THROWS_WITH(check_device_map(*model, {{"0", DevicePlacement::cpu()}, {"1.weight", DevicePlacement::disk()}}),
                    ContainsSubstring("no entry for 1.bias"));
  CHECK_THROWS_WITH(check_device_map(*model, {{"", DevicePlacement::cpu()}, {"2", DevicePlacement::cpu()}}),
                    ContainsSubstring("2"));
}

TEST_CASE("an inferred map has the module's names") {
  torch::nn::Sequential model(torch::nn::Linear(10, 10), torch::nn::Linear(10, 10));
  CHECK(compute_module_sizes(*model) ==
        std::map<std::string, Bytes>{
            {"", 880}, {"0", 440}, {"0.weight", 400}, {"0.bias", 40}, {"1", 440}, {"1.weight", 400}, {"1.bias", 40}});
  CHECK(compute_module_sizes(*model, {.dtype = at::kHalf}).at("") == 440);

  model->push_back(torch::nn::Linear(10, 10));
  const auto map = infer_auto_device_map(*model, {.max_memory = {{DevicePlacement::cpu(), 900}}});
  CHECK(map ==
        DeviceMap{{"0", DevicePlacement::cpu()}, {"1", DevicePlacement::disk()}, {"2", DevicePlacement::disk()}});
  CHECK_NOTHROW(check_device_map(*model, map));
}
