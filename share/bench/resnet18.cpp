#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "bench/workloads.hpp"

namespace hortator::bench {
namespace {

torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct BasicBlock final : Net {
  BasicBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv_1(register_module("conv_1", convolution(in, out, 3, stride))),
        norm_1(register_module("norm_1", torch::nn::BatchNorm2d(out))),
        conv_2(register_module("conv_2", convolution(out, out, 3, 1))),
        norm_2(register_module("norm_2", torch::nn::BatchNorm2d(out))) {
    if (stride == 1 && in == out) return;
    shortcut = register_module("shortcut", convolution(in, out, 1, stride));
    shortcut_norm = register_module("shortcut_norm", torch::nn::BatchNorm2d(out));
  }

  at::Tensor forward(const at::Tensor& x) override {
    const auto y = norm_2(conv_2(at::relu(norm_1(conv_1(x)))));
    return at::relu(y + (shortcut ? shortcut_norm(shortcut(x)) : x));
  }

  torch::nn::Conv2d conv_1;
  torch::nn::BatchNorm2d norm_1;
  torch::nn::Conv2d conv_2;
  torch::nn::BatchNorm2d norm_2;
  torch::nn::Conv2d shortcut = nullptr;
  torch::nn::BatchNorm2d shortcut_norm = nullptr;
};

// For 32 x 32 images: the stem has stride 1, and no pooling precedes the blocks.
struct ResNet18 final : Net {
  ResNet18() {
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
      blocks->push_back(std::make_shared<BasicBlock>(in, out, out == 64 ? 1 : 2));
      blocks->push_back(std::make_shared<BasicBlock>(out, out, 1));
      in = out;
    }
  }

  at::Tensor forward(const at::Tensor& images) override {
    auto x = at::relu(norm(stem(images)));
    for (const auto& block : *blocks) x = block->as<BasicBlock>()->forward(x);
    return head(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  torch::nn::Conv2d stem = register_module("stem", convolution(3, 64, 3, 1));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(64));
  torch::nn::ModuleList blocks = register_module("blocks", torch::nn::ModuleList());
  torch::nn::Linear head = register_module("head", torch::nn::Linear(512, 10));
};

}  // namespace

std::shared_ptr<Net> make_resnet18() { return std::make_shared<ResNet18>(); }

}  // namespace hortator::bench
