#include "simulation/networks/unet.hpp"

#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/cat.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {

UnetBlockImpl::UnetBlockImpl(ConvolutionImpl::Shape shape, Activation activation) : activation_(activation) {
  first_ = register_module("first", Convolution(shape));
  shape.inputs = shape.outputs;
  second_ = register_module("second", Convolution(shape));
}

at::Tensor UnetBlockImpl::forward(const at::Tensor& input) { return activation_(second_(activation_(first_(input)))); }

Unet::Unet(const Section& section)
    : dims_(section.integer("dims", 1, 2)),
      inputs_(section.integer("in_channels", 1)),
      outputs_(section.integer("out_channels", 1)),
      levels_(section.integer("levels", 1, 2)) {
  if (dims_ > 3) throw section.error("dims", "expected 1, 2 or 3");
  if (levels_ > 8) throw section.error("levels", "expected at most 8");
  const auto activation = read_activation(section, "activation", "gelu");
  auto width = section.integer("width", 1, 16);
  const bool is_periodic = section.choice("boundary", {"zeros", "periodic"}, "zeros") == "periodic";
  const auto shape = [&](std::int64_t inputs, std::int64_t outputs, std::int64_t kernel) {
    return ConvolutionImpl::Shape{dims_, inputs, outputs, kernel, is_periodic};
  };
  auto channels = inputs_;
  for (std::int64_t i = 0; i < levels_; ++i) {
    down_.push_back(register_module(text::concat("down", i), UnetBlock(shape(channels, width, 3), activation)));
    up_.push_back(register_module(text::concat("up", i), UnetBlock(shape(3 * width, width, 3), activation)));
    channels = width;
    width *= 2;
  }
  bottom_ = register_module("bottom", UnetBlock(shape(channels, width, 3), activation));
  const auto top = width >> levels_;
  last_ = register_module("last", Convolution(shape(top, outputs_, 1)));
}

at::Tensor Unet::halve(const at::Tensor& input) const {
  const std::vector<std::int64_t> two(static_cast<std::size_t>(dims_), 2);
  if (dims_ == 1) return at::avg_pool1d(input, two, two);
  return dims_ == 2 ? at::avg_pool2d(input, two, two) : at::avg_pool3d(input, two, two);
}

at::Tensor Unet::twice(at::Tensor input) const {
  for (std::int64_t dim = 2; dim < 2 + dims_; ++dim) input = input.repeat_interleave(2, dim);
  return input;
}

void Unet::require_sizes(const at::Tensor& input) const {
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) {
    if (input.dim() == dims_ + 2 && input.size(dim) % (std::int64_t{1} << levels_) == 0) continue;
    throw UsageError({.what = text::concat("The input has the shape ", input.sizes(), "; this U-Net expects ", dims_,
                                           " dimensions after the channels, of sizes that are multiples of ",
                                           std::int64_t{1} << levels_),
                      .hint = "use fewer levels, or pad the field"});
  }
}

at::Tensor Unet::compute(const at::Tensor& input) {
  require_features(input, 1, inputs_, dims_ + 2);
  require_sizes(input);
  std::vector<at::Tensor> kept;
  auto x = input;
  for (auto& block : down_) {
    kept.push_back(block(x));
    x = halve(kept.back());
  }
  x = bottom_(x);
  for (auto i = up_.size(); i-- > 0;) x = up_[i](at::cat({kept[i], twice(x)}, 1));
  return last_(x);
}

}  // namespace hortator::simulation
