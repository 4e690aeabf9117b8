#include "simulation/networks/transformer.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/transformerlayer.h>

#include <cmath>

namespace hortator::simulation {
namespace {

/// Sines and cosines of geometrically spaced frequencies: [length, width].
at::Tensor positions_of(const at::Tensor& like, std::int64_t length, std::int64_t width) {
  // 16 bits cannot count beyond 256.
  const auto options = like.options().dtype(like.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const auto rate = (at::arange((width + 1) / 2, options) * (-2 * std::log(1e4) / static_cast<double>(width))).exp();
  const auto angle = at::arange(length, options).unsqueeze(1) * rate;
  return at::cat({angle.sin(), angle.cos()}, 1).narrow(1, 0, width).to(like.scalar_type());
}

}  // namespace

Transformer::Transformer(const Section& section)
    : inputs_(section.integer("in_features", 1)),
      outputs_(section.integer("out_features", 1)),
      width_(section.integer("width", 1, 64)),
      has_positions_(section.choice("positions", {"sinusoidal", "none"}, "sinusoidal") == "sinusoidal") {
  const auto heads = section.integer("heads", 1, 4);
  if (width_ % heads != 0) throw section.error("width", "expected a multiple of heads");
  const auto layer = torch::nn::TransformerEncoderLayerOptions(width_, heads)
                         .dim_feedforward(section.integer("feedforward", 1, 4 * width_))
                         .dropout(section.number("dropout", 0))
                         .activation(torch::kGELU);
  lift_ = register_module("lift", torch::nn::Linear(inputs_, width_));
  encoder_ = register_module("encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderLayer(layer),
                                                                      section.integer("depth", 1, 2)));
  last_ = register_module("last", torch::nn::Linear(width_, outputs_));
  // The encoder clones its first layer; without this all layers would start alike.
  for (auto& parameter : encoder_->parameters()) {
    if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  }
}

at::Tensor Transformer::compute(const at::Tensor& input) {
  require_features(input, -1, inputs_, 3);
  auto x = lift_(input);
  if (has_positions_) x = x + positions_of(x, x.size(1), width_);
  return last_(encoder_(x.transpose(0, 1)).transpose(0, 1));
}

}  // namespace hortator::simulation
