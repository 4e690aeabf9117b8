// ViT: an image as a text of patches, in an encoder with norms before each part.
#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>

#include <hortator/error.hpp>
#include <hortator/parallel/pipeline.hpp>

#include <hortator/training/recompute.hpp>
#include "core/text/text.hpp"

#include "models/architectures.hpp"
#include "models/heads.hpp"
#include "models/layers/activation.hpp"
#include "models/layers/attention.hpp"
#include "models/layers/model_inputs.hpp"
#include "models/layers/modules.hpp"
#include "models/layers/projection.hpp"
#include "models/tensor_plans.hpp"

namespace hortator::models {
namespace {

using enum TensorDivision;

struct VitShape {
  std::int64_t width, inner, layers, heads, channels, pooled;
  std::vector<std::int64_t> image, patch;  ///< height and width
  double epsilon, attention_dropout, dropout;
  bool query_bias;
  Activation activation, pooler_activation;
};

std::vector<std::int64_t> height_and_width(const ConfigFields& fields, const std::string& name, std::int64_t absent) {
  auto both = fields.dimensions(name);
  if (both.empty()) both = {absent};
  if (both.size() == 1) both.push_back(both.front());
  fields.require(both.size() == 2 && both[0] > 0 && both[1] > 0, name, "expected a size, or height and width");
  return both;
}

VitShape vit_shape(const ConfigFields& fields) {
  VitShape shape{};
  shape.width = fields.dimension("hidden_size");
  shape.inner = fields.dimension("intermediate_size");
  shape.layers = fields.layers("num_hidden_layers");
  shape.heads = fields.dimension("num_attention_heads");
  fields.require(shape.width % shape.heads == 0, "hidden_size", "expected a multiple of num_attention_heads");
  shape.channels = fields.dimension("num_channels", 3);
  shape.pooled = fields.dimension("pooler_output_size", shape.width);
  shape.image = height_and_width(fields, "image_size", 224);
  shape.patch = height_and_width(fields, "patch_size", 16);
  shape.epsilon = fields.number("layer_norm_eps", 1e-12);
  shape.attention_dropout = fields.probability("attention_probs_dropout_prob", 0);
  shape.dropout = fields.probability("hidden_dropout_prob", 0);
  shape.query_bias = fields.flag("qkv_bias", true);
  shape.activation = activation_of(fields, "hidden_act", "gelu");
  shape.pooler_activation = activation_of(fields, "pooler_act", "tanh");
  fields.skip("encoder_stride");
  return shape;
}

class VitLayerImpl final : public torch::nn::Module {
 public:
  explicit VitLayerImpl(const VitShape& shape)
      : head_width_(shape.width / shape.heads),
        attention_dropout_(shape.attention_dropout),
        dropout_(shape.dropout),
        activation_(shape.activation),
        query_(place(*this, "attention.attention.query", linear(shape.width, shape.width, shape.query_bias))),
        key_(place(*this, "attention.attention.key", linear(shape.width, shape.width, shape.query_bias))),
        value_(place(*this, "attention.attention.value", linear(shape.width, shape.width, shape.query_bias))),
        join_(place(*this, "attention.output.dense", linear(shape.width, shape.width))),
        widen_(place(*this, "intermediate.dense", linear(shape.width, shape.inner))),
        narrow_(place(*this, "output.dense", linear(shape.inner, shape.width))),
        before_(register_module("layernorm_before", layer_norm(shape.width, shape.epsilon))),
        after_(register_module("layernorm_after", layer_norm(shape.width, shape.epsilon))) {}

  at::Tensor forward(at::Tensor x) {
    const auto y = before_(x);
    const auto mixed = attention(
        split_heads(project(y, query_), head_width_), split_heads(project(y, key_), head_width_),
        split_heads(project(y, value_), head_width_), {}, {.dropout = is_training() ? attention_dropout_ : 0.0});
    x = x + at::dropout(project(mixed, join_), dropout_, is_training());
    return x + at::dropout(project(activation_(project(after_(x), widen_)), narrow_), dropout_, is_training());
  }

 private:
  std::int64_t head_width_;
  double attention_dropout_, dropout_;
  Activation activation_;
  torch::nn::Linear query_, key_, value_, join_, widen_, narrow_;
  torch::nn::LayerNorm before_, after_;
};
TORCH_MODULE(VitLayer);

class Vit final : public PretrainedModel {
 public:
  Vit(const VitShape& shape, bool pools)
      : image_(shape.image), dropout_(shape.dropout), pooler_activation_(shape.pooler_activation) {
    auto& embeddings = module_at(*this, "embeddings");
    const auto patches = (shape.image[0] / shape.patch[0]) * (shape.image[1] / shape.patch[1]);
    first_ = embeddings.register_parameter("cls_token", at::empty({1, 1, shape.width}).normal_(0, 0.02));
    positions_ =
        embeddings.register_parameter("position_embeddings", at::empty({1, patches + 1, shape.width}).normal_(0, 0.02));
    patches_ =
        place(*this, "embeddings.patch_embeddings.projection",
              torch::nn::Conv2d(torch::nn::Conv2dOptions(shape.channels, shape.width, {shape.patch[0], shape.patch[1]})
                                    .stride({shape.patch[0], shape.patch[1]})));
    layers_ = place(*this, "encoder.layer", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < shape.layers; ++i) layers_->push_back(VitLayer(shape));
    norm_ = register_module("layernorm", layer_norm(shape.width, shape.epsilon));
    if (pools) pooler_ = place(*this, "pooler.dense", linear(shape.width, shape.pooled));
  }

  std::vector<std::string> classes_of_layers() const override { return {"ViTLayer", "VitLayer"}; }
  std::vector<std::string> names_of_layers() const override {
    return numbered_names("encoder.layer.", layers_->size());
  }

  ModelOutputs forward(const ModelInputs& inputs) override {
    require_images(inputs);
    const auto& pixels = inputs.pixel_values;
    require_size(pixels);
    PipelineLayers stage(layers_->size());
    auto x = stage.enter([&] { return embed(pixels); });
    for (const auto i : stage) {
      const auto run = [layer = layers_[i]](const at::Tensor& before) {
        return layer->as<VitLayer>()->forward(before);
      };
      x = recomputes_layers() ? recompute(run, x) : run(x);
    }
    stage.leave(x);
    x = norm_(x);
    const auto first = x.select(1, 0);
    return {.last_hidden_state = x, .pooler_output = pooler_ ? pooler_activation_(pooler_(first)) : first};
  }

 private:
  at::Tensor embed(const at::Tensor& pixels) {
    const auto patches = patches_(pixels).flatten(2).transpose(1, 2);
    const auto x = at::cat({first_.expand({patches.size(0), -1, -1}), patches}, 1) + positions_;
    return at::dropout(x, dropout_, is_training());
  }
  void require_size(const at::Tensor& pixels) const {
    if (pixels.dim() == 4 && pixels.size(2) == image_[0] && pixels.size(3) == image_[1]) return;
    throw UsageError({.what = text::concat("pixel_values has the shape ", pixels.sizes()),
                      .hint = text::concat("expected [batch, channels, ", image_[0], ", ", image_[1],
                                           "], the image_size of config.json")});
  }

  std::vector<std::int64_t> image_;
  double dropout_;
  Activation pooler_activation_;
  at::Tensor first_, positions_;
  torch::nn::Conv2d patches_ = nullptr;
  torch::nn::ModuleList layers_ = nullptr;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::nn::Linear pooler_ = nullptr;
};

std::shared_ptr<PretrainedModel> make_vit(const ConfigFields& fields, const Architecture& architecture) {
  const auto shape = vit_shape(fields);
  const auto vit = std::make_shared<Vit>(shape, architecture.head == Head::none);
  if (architecture.head == Head::none) return vit;
  return pooled_head({.model = vit, .name = std::string(architecture.prefix), .width = shape.width},
                     {.name = "classifier", .outputs = fields.num_labels()});
}

TensorPlan vit_plan(int head) {
  return encoder_plan({.query = "attention.attention.query",
                       .key = "attention.attention.key",
                       .value = "attention.attention.value",
                       .out = "attention.output.dense",
                       .up = "intermediate.dense",
                       .down = "output.dense"},
                      head);
}

}  // namespace

std::vector<Architecture> vit_architectures() {
  return {{"ViTModel", "vit", Head::none, "vit", make_vit, vit_plan},
          {"ViTForImageClassification", "vit", Head::image, "vit", make_vit, vit_plan}};
}

}  // namespace hortator::models
