// ResNet, under the names of transformers, or those that torchvision and timm have in common.
#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <cmath>
#include <functional>
#include <hortator/error.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/training/recompute.hpp>
#include <map>
#include <optional>

#include "core/text/text.hpp"
#include "models/architectures.hpp"
#include "models/heads.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"

namespace hortator::models {
namespace {

struct ResNetShape {
  std::int64_t channels = 3, stem = 64;
  std::vector<std::int64_t> widths = {}, depths = {};  ///< of each stage
  bool has_bottlenecks = false, strides_early = false, strides_first_stage = false;
  Activation activation = nullptr;
};

/// A place of two modules: a convolution and the norm after it.
struct PairNames {
  std::string convolution, norm;
};

/// How a library names the modules.
struct ResNetNames {
  PairNames stem;
  std::function<std::string(std::size_t stage, std::int64_t block)> block;
  std::function<PairNames(std::size_t stage, std::int64_t block, std::size_t layer)> layer;
  std::function<PairNames(std::size_t stage, std::int64_t block)> shortcut;
};

ResNetNames names_in_transformers() {
  const auto below = [](const std::string& path) { return PairNames{path + ".convolution", path + ".normalization"}; };
  const auto block_path = [](std::size_t stage, std::int64_t block) {
    return text::concat("encoder.stages.", stage, ".layers.", block);
  };
  return {
      .stem = below("embedder.embedder"),
      .block = block_path,
      .layer = [=](std::size_t stage, std::int64_t block,
                   std::size_t layer) { return below(text::concat(block_path(stage, block), ".layer.", layer)); },
      .shortcut = [=](std::size_t stage, std::int64_t block) { return below(block_path(stage, block) + ".shortcut"); }};
}

ResNetNames names_in_torchvision() {
  const auto block_path = [](std::size_t stage, std::int64_t block) {
    return text::concat("layer", stage + 1, ".", block);
  };
  return {.stem = {"conv1", "bn1"},
          .block = block_path,
          .layer =
              [=](std::size_t stage, std::int64_t block, std::size_t layer) {
                const auto path = block_path(stage, block);
                return PairNames{text::concat(path, ".conv", layer + 1), text::concat(path, ".bn", layer + 1)};
              },
          .shortcut =
              [=](std::size_t stage, std::int64_t block) {
                const auto path = block_path(stage, block) + ".downsample";
                return PairNames{path + ".0", path + ".1"};
              }};
}

/// A convolution without bias, then a batch norm.
class ConvolutionAndNorm {
 public:
  struct Size {
    std::int64_t in, out, kernel, stride;
  };
  ConvolutionAndNorm(torch::nn::Module& root, const PairNames& names, const Size& size)
      : convolution_(place(root, names.convolution,
                           torch::nn::Conv2d(torch::nn::Conv2dOptions(size.in, size.out, size.kernel)
                                                 .stride(size.stride)
                                                 .padding(size.kernel / 2)
                                                 .bias(false)))),
        norm_(place(root, names.norm, torch::nn::BatchNorm2d(size.out))) {
    const at::NoGradGuard no_grad;
    const auto fan_out = static_cast<double>(size.out * size.kernel * size.kernel);
    convolution_->weight.normal_(0, std::sqrt(2 / fan_out));
  }

  at::Tensor operator()(const at::Tensor& x) { return norm_(convolution_(x)); }
  void add_norm(torch::nn::Module& module, const std::string& name) const { module.register_module(name, norm_); }

 private:
  torch::nn::Conv2d convolution_;
  torch::nn::BatchNorm2d norm_;
};

struct ResidualBlock {
  std::vector<ConvolutionAndNorm> layers = {};
  std::optional<ConvolutionAndNorm> shortcut = {};  ///< where the shape changes

  at::Tensor forward(const at::Tensor& x, Activation activation) {
    auto y = layers.front()(x);
    for (std::size_t i = 1; i < layers.size(); ++i) y = layers[i](at::relu(y));  // whatever the activation
    return activation(y + (shortcut ? (*shortcut)(x) : x));
  }
};

/// A block as a module, so that recompute() knows the buffers of its norms and changes them once.
class RecomputedBlock final : public torch::nn::Module {
 public:
  RecomputedBlock(ResidualBlock block, Activation activation) : block_(std::move(block)), activation_(activation) {
    for (std::size_t i = 0; i < block_.layers.size(); ++i) block_.layers[i].add_norm(*this, text::concat("norm", i));
    if (block_.shortcut) block_.shortcut->add_norm(*this, "shortcut");
  }
  at::Tensor forward(const at::Tensor& x) { return block_.forward(x, activation_); }

 private:
  ResidualBlock block_;
  Activation activation_;
};

class ResNet : public PretrainedModel {
 public:
  ResNet(const ResNetShape& shape, const ResNetNames& names)
      : channels_(shape.channels),
        activation_(shape.activation),
        stem_(*this, names.stem, {.in = shape.channels, .out = shape.stem, .kernel = 7, .stride = 2}) {
    auto in = shape.stem;
    for (std::size_t stage = 0; stage < shape.widths.size(); ++stage) {
      for (std::int64_t block = 0; block < shape.depths[stage]; ++block) {
        const bool halves = block == 0 && (stage > 0 || shape.strides_first_stage);
        add_block(shape, names, {stage, block, in, halves ? 2 : 1});
        in = shape.widths[stage];
      }
    }
  }

  std::vector<std::string> classes_of_layers() const override {
    return {"ResNetBottleNeckLayer", "ResNetBasicLayer", "Bottleneck", "BasicBlock"};
  }
  std::vector<std::string> names_of_layers() const override { return block_names_; }

  ModelOutputs forward(const ModelInputs& inputs) override {
    require_images(inputs);
    require_channels(inputs.pixel_values);
    PipelineLayers stage(blocks_.size());
    auto x = stage.enter([&] { return at::max_pool2d(activation_(stem_(inputs.pixel_values)), 3, 2, 1); });
    for (const auto i : stage) {
      auto& block = blocks_[i];
      x = recomputes_layers() ? recompute(std::make_shared<RecomputedBlock>(block, activation_), x)
                              : block.forward(x, activation_);
    }
    stage.leave(x);
    return {.last_hidden_state = x, .pooler_output = x.mean({2, 3})};
  }

 private:
  struct BlockPosition {
    std::size_t stage;
    std::int64_t block, in, stride;
  };

  void add_block(const ResNetShape& shape, const ResNetNames& names, const BlockPosition& at) {
    block_names_.push_back(names.block(at.stage, at.block));
    const auto out = shape.widths[at.stage], in = at.in, stride = at.stride;
    const auto inner = out / 4;
    std::vector<ConvolutionAndNorm::Size> sizes = {{in, out, 3, stride}, {out, out, 3, 1}};
    if (shape.has_bottlenecks) {
      const auto early = shape.strides_early ? stride : 1;
      sizes = {{in, inner, 1, early}, {inner, inner, 3, stride / early}, {inner, out, 1, 1}};
    }
    auto& block = blocks_.emplace_back();
    for (const auto& size : sizes)
      block.layers.emplace_back(*this, names.layer(at.stage, at.block, block.layers.size()), size);
    if (in != out || stride != 1)
      block.shortcut.emplace(*this, names.shortcut(at.stage, at.block), ConvolutionAndNorm::Size{in, out, 1, stride});
  }

  void require_channels(const at::Tensor& pixels) const {
    if (pixels.dim() == 4 && pixels.size(1) == channels_) return;
    throw UsageError({.what = text::concat("pixel_values has the shape ", pixels.sizes()),
                      .hint = text::concat("expected [batch, ", channels_, ", height, width]")});
  }

  std::int64_t channels_;
  Activation activation_;
  ConvolutionAndNorm stem_;
  std::vector<ResidualBlock> blocks_;
  std::vector<std::string> block_names_;
};

/// With a head beside the other modules.
class TorchvisionResNet final : public ResNet {
 public:
  TorchvisionResNet(const ResNetShape& shape, std::int64_t labels)
      : ResNet(shape, names_in_torchvision()), fc_(register_module("fc", linear(shape.widths.back(), labels))) {}

  ModelOutputs forward(const ModelInputs& inputs) override {
    auto outputs = ResNet::forward(inputs);
    outputs.logits = fc_(outputs.pooler_output);
    return outputs;
  }

 private:
  torch::nn::Linear fc_;
};

ResNetShape shape_in_transformers(const ConfigFields& fields) {
  constexpr std::int64_t max_depth = 1024;
  ResNetShape shape{.channels = fields.dimension("num_channels", 3), .stem = fields.dimension("embedding_size", 64)};
  shape.widths = fields.dimensions("hidden_sizes");
  shape.depths = fields.integers("depths");
  fields.require(!shape.widths.empty() && shape.widths.size() <= 16, "hidden_sizes", "expected 1 to 16 sizes");
  fields.require(shape.depths.size() == shape.widths.size(), "depths", "expected as many as hidden_sizes");
  for (const auto depth : shape.depths)
    fields.require(depth > 0 && depth <= max_depth, "depths", "expected numbers from 1 to 1024");
  const auto type = fields.text("layer_type", "bottleneck");
  fields.require_one_of("layer_type", type, {"basic", "bottleneck"});
  shape.has_bottlenecks = type == "bottleneck";
  for (const auto width : shape.widths)
    fields.require(width >= (shape.has_bottlenecks ? 4 : 1), "hidden_sizes", "expected larger sizes");
  shape.strides_early = fields.flag("downsample_in_bottleneck", false);
  shape.strides_first_stage = fields.flag("downsample_in_first_stage", false);
  shape.activation = activation_of(fields, "hidden_act", "relu");
  for (const auto* name : {"out_features", "out_indices", "stage_names"}) fields.skip(name);
  return shape;
}

std::shared_ptr<PretrainedModel> make_torchvision_resnet(const ConfigFields& fields, std::string_view name) {
  const std::map<std::string_view, std::vector<std::int64_t>> depths = {{"resnet18", {2, 2, 2, 2}},
                                                                        {"resnet34", {3, 4, 6, 3}},
                                                                        {"resnet50", {3, 4, 6, 3}},
                                                                        {"resnet101", {3, 4, 23, 3}},
                                                                        {"resnet152", {3, 8, 36, 3}}};
  constexpr std::int64_t image_net = 1000;
  const bool is_small = name == "resnet18" || name == "resnet34";
  ResNetShape shape{.depths = depths.at(name), .has_bottlenecks = !is_small};
  for (const std::int64_t width : {64, 128, 256, 512}) shape.widths.push_back(is_small ? width : 4 * width);
  shape.activation = activation_named("relu");
  shape.channels = fields.dimension("in_chans", shape.channels);
  fields.require_value("global_pool", "avg");
  fields.require_value("model_args", nlohmann::json::object());
  for (const auto* skipped : {"num_features", "pretrained_cfg", "label_names", "label_descriptions"})
    fields.skip(skipped);
  const auto labels = fields.has("num_labels") ? fields.num_labels() : fields.dimension("num_classes", image_net);
  fields.skip("num_classes");
  return std::make_shared<TorchvisionResNet>(shape, labels);
}

std::shared_ptr<PretrainedModel> make_resnet(const ConfigFields& fields, const Architecture& architecture) {
  if (architecture.family == "timm") return make_torchvision_resnet(fields, architecture.name);
  const auto shape = shape_in_transformers(fields);
  const auto resnet = std::make_shared<ResNet>(shape, names_in_transformers());
  if (architecture.head == Head::none) return resnet;
  return pooled_head({.model = resnet, .name = std::string(architecture.prefix), .width = shape.widths.back()},
                     {.name = "classifier.1", .outputs = fields.num_labels()});
}

}  // namespace

std::vector<Architecture> resnet_architectures() {
  return {{"ResNetModel", "resnet", Head::none, "resnet", make_resnet},
          {"ResNetForImageClassification", "resnet", Head::image, "resnet", make_resnet},
          {"resnet18", "timm", Head::image, "", make_resnet},
          {"resnet34", "timm", Head::image, "", make_resnet},
          {"resnet50", "timm", Head::image, "", make_resnet},
          {"resnet101", "timm", Head::image, "", make_resnet},
          {"resnet152", "timm", Head::image, "", make_resnet}};
}

}  // namespace hortator::models
