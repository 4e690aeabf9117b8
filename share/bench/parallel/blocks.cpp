#include "bench/parallel/blocks.hpp"

#include <ATen/ops/gelu.h>

#include <utility>
#include <vector>

#include "bench/transformer_layer.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t block_heads = 8;

struct PipelineBlock final : TransformerLayer {
  PipelineBlock() : TransformerLayer(block_width, block_heads) {}
  at::Tensor forward(const at::Tensor& input) override {
    const auto x = input + attention(norm_1(input), Sight::backwards);
    return x + linear(at::gelu(linear(norm_2(x), up), "tanh"), down);
  }
};

}  // namespace

std::shared_ptr<PipelineModule> make_blocks(std::int64_t count) {
  torch::manual_seed(1);
  std::vector<PipelineLayer> layers;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto block = std::make_shared<PipelineBlock>();
    layers.push_back({.module = block, .run = [block](const auto& inputs) {
                        return PipelineLayer::Tensors{block->forward(inputs.at(0))};
                      }});
  }
  return hortator::pipeline(std::move(layers));
}

}  // namespace hortator::bench
