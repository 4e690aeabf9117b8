#include "bigmodel/device_map.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/big_models.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("places are written as users write them, and ordered as they are filled") {
  CHECK(Place::parse("0") == Place::cuda(0));
  CHECK(Place::parse("cuda:3") == Place::cuda(3));
  CHECK(Place::parse("cpu") == Place::cpu());
  CHECK(Place::parse("disk") == Place::disk());
  for (const auto* words : {"", "gpu", "cuda:", "cuda:-1", "-1", "1.5", "99999999999999"})
    CHECK_THROWS_WITH(Place::parse(words), ContainsSubstring("is no place for a part of a model"));
  CHECK_THROWS_AS(Place::cuda(-1), UsageError);
  CHECK(Place::cuda(1) < Place::cuda(2));
  CHECK(Place::cuda(7) < Place::cpu());
  CHECK(Place::cpu() < Place::disk());
  CHECK(text::concat(Place::cuda(1), " ", Place::cpu(), " ", Place::disk()) == "cuda:1 cpu disk");
}

TEST_CASE("an entry stands for all below it, the nearest one counts") {
  const DeviceMap map = {{"", Place::disk()}, {"a", Place::cpu()}, {"a.b", Place::cuda(0)}};
  CHECK(*bigmodel::place_in(map, "a.b.weight") == Place::cuda(0));
  CHECK(*bigmodel::place_in(map, "a.bc") == Place::cpu());
  CHECK(*bigmodel::place_in(map, "ab") == Place::disk());
  CHECK(bigmodel::place_in({{"a", Place::cpu()}}, "ab") == nullptr);
}

TEST_CASE("a map is checked against the module: what has no place, and what is not there") {
  torch::nn::Sequential model(torch::nn::Linear(2, 3), torch::nn::Linear(3, 2));
  CHECK_NOTHROW(check_device_map(*model, {{"", Place::cpu()}}));
  CHECK_NOTHROW(check_device_map(*model, {{"0", Place::cpu()}, {"1.weight", Place::disk()}, {"1.bias", Place::cpu()}}));
  CHECK_THROWS_WITH(check_device_map(*model, {{"0", Place::cpu()}, {"1.weight", Place::disk()}}),
                    ContainsSubstring("no place for 1.bias"));
  CHECK_THROWS_WITH(check_device_map(*model, {{"", Place::cpu()}, {"2", Place::cpu()}}), ContainsSubstring("2"));
}

TEST_CASE("maps of modules name what the module has") {
  torch::nn::Sequential model(torch::nn::Linear(10, 10), torch::nn::Linear(10, 10));
  CHECK(compute_module_sizes(*model) ==
        std::map<std::string, Bytes>{
            {"", 880}, {"0", 440}, {"0.weight", 400}, {"0.bias", 40}, {"1", 440}, {"1.weight", 400}, {"1.bias", 40}});
  CHECK(compute_module_sizes(*model, {.dtype = at::kHalf}).at("") == 440);

  model->push_back(torch::nn::Linear(10, 10));
  const auto map = infer_auto_device_map(*model, {.max_memory = {{Place::cpu(), 900}}});
  CHECK(map == DeviceMap{{"0", Place::cpu()}, {"1", Place::disk()}, {"2", Place::disk()}});
  CHECK_NOTHROW(check_device_map(*model, map));
}
