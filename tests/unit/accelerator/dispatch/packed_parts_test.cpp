// Parts of a dispatched model that are packed while they are loaded.
#include "accelerator/dispatch/packed_parts.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/models/pretrained.hpp>
#include <map>

#include "interception/weight_operators.hpp"
#include "packed/packed_rows.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using Catch::Matchers::Contains;

namespace {

torch::nn::Sequential two_layers(int seed) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(32, 16), torch::nn::Linear(16, 8));
}

at::Tensor weight_of(const torch::nn::Sequential& net, const char* name) { return net->named_parameters()[name]; }

/// The values of the bytes that a source has for a weight.
at::Tensor unpacked(const packed::PackingSource& source, const at::Tensor& weight, const std::string& name) {
  const auto layer = packed::packed_layer_of(weight);
  REQUIRE(layer);
  return packed::unpacked_rows(layer->layout, source.tensor(name), 0, layer->layout.outputs);
}

}  // namespace

TEST_CASE("layers that a checkpoint fills are packed by the source, and others in place") {
  const test::OwnFolder folder("packed-parts");
  std::filesystem::create_directories(folder.path);
  const auto file = folder.path / "first.safetensors";
  const auto stored = two_layers(1);
  models::save_tensors(
      {{"0.weight", weight_of(stored, "0.weight").detach()}, {"0.bias", weight_of(stored, "0.bias").detach()}}, file);
  auto net = two_layers(2);
  const auto own = weight_of(net, "1.weight").detach().clone();
  const accelerator::Loading loading(*net, file, {.strict = false});
  const auto source = accelerator::packing_source(loading, *net, {.format = WeightFormat::int8});
  CHECK(interception::is_packed(weight_of(net, "0.weight")));
  const auto expected = weight_of(stored, "0.weight").detach();
  CHECK(at::allclose(unpacked(*source, weight_of(net, "0.weight"), "0.weight"), expected, 0, 0.002));
  CHECK(at::equal(source->tensor("0.bias"), weight_of(stored, "0.bias").detach()));
  const auto x = at::ones({1, 16});
  const auto found = (*net)[1]->as<torch::nn::Linear>()->forward(x);
  CHECK(at::allclose(found, at::linear(x, own, weight_of(net, "1.bias")), 0, 0.02));
  CHECK(interception::is_packed(weight_of(net, "1.weight")));
}

TEST_CASE("packed weights stay on the host, and on disk only with a folder") {
  const test::OwnFolder folder("packed-places");
  std::filesystem::create_directories(folder.path);
  const auto file = folder.path / "whole.safetensors";
  const auto stored = two_layers(1);
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : stored->named_parameters()) tensors.emplace(item.key(), item.value().detach());
  models::save_tensors(tensors, file);
  auto net = two_layers(2);
  const accelerator::Loading loading(*net, file, {});
  const auto source = accelerator::packing_source(loading, *net, {.format = WeightFormat::int4, .group = 16});
  auto placed = accelerator::tensors_to_place(
      *net, [](const std::string&, const at::Tensor& tensor) { return tensor.scalar_type(); });
  CHECK_NOTHROW(accelerator::require_packed_on_host(placed));
  for (auto& one : placed) one.place = DevicePlacement::parse("cuda:0");
  CHECK_THROWS_WITH(accelerator::require_packed_on_host(placed), Contains("'0.weight'") && Contains("cuda:0"));
  std::erase_if(placed, [](const auto& one) { return one.name.ends_with("weight"); });
  CHECK_NOTHROW(accelerator::require_packed_on_host(placed));  // biases may go there

  accelerator::Division division;
  for (const auto& filling : loading.fillings()) division.later.push_back(filling);
  CHECK_THROWS_WITH(accelerator::keep_packed_on_disk(*source, division, {}),
                    Contains("'0.weight'") && Contains(".offload_folder is not set"));
  const auto before = source->tensor("0.weight").clone();
  const auto offload = folder.path / "offload";
  accelerator::keep_packed_on_disk(*source, division, offload);
  CHECK(std::filesystem::is_empty(offload));  // the file has no name
  CHECK(source->span("0.weight"));
  CHECK(at::equal(source->tensor("0.weight"), before));
  CHECK_NOTHROW(accelerator::keep_packed_on_disk(*source, {}, {}));  // nothing is on disk
}
