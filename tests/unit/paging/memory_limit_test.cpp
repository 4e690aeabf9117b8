#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/bigmodel/deferred_construction.hpp>
#include <hortator/bigmodel/offload.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"

namespace hortator {
namespace {

constexpr std::int64_t width_of_layers = 1024;  // 4 MiB a layer
constexpr int layers = 48;                      // 192 MiB
constexpr rlim_t allowed = rlim_t{48} << 20;

}  // namespace

TEST_CASE("A model four times as large as the memory computes as it would in memory", "[memory_limit]") {
  const at::NoGradGuard no_grad;
  const auto input = at::randn({2, width_of_layers});
  at::manual_seed(21);
  auto expected = input;
  for (int i = 0; i < layers; ++i)
    expected = torch::nn::Linear(width_of_layers, width_of_layers)->forward(expected).relu();

  const auto disk = testing::folder("memory_limit");
  const test::MemoryLimit limit(allowed);
  CHECK_THROWS(at::empty({layers, width_of_layers, width_of_layers}));  // the limit is in force
  at::manual_seed(21);
  auto net = construct_deferred([] {
    std::vector<torch::nn::Linear> made;
    for (int i = 0; i < layers; ++i) made.emplace_back(width_of_layers, width_of_layers);
    return made;
  });
  torch::nn::Sequential whole;
  for (const auto& layer : net) whole->push_back(layer);
  const auto offload = disk_offload(whole, disk, {.page_bytes = 4 << 20, .recycled_bytes = 0});
  for (int pass = 0; pass < 2; ++pass) {
    auto actual = input;
    for (auto& layer : net) actual = layer->forward(actual).relu();
    CHECK(testing::same_bits(actual, expected));
  }
}

}  // namespace hortator
