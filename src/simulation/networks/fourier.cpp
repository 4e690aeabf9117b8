#include "simulation/networks/fourier.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/fft_irfftn.h>
#include <ATen/ops/fft_rfftn.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/view_as_complex.h>

#include <hortator/error.hpp>
#include <numeric>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

std::vector<std::int64_t> field_dims(std::size_t count) {
  std::vector<std::int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), 2);
  return dims;
}

/// The position along each dimension, from 0 to 1, as channels of a field like `input`.
at::Tensor coordinates_of(const at::Tensor& input) {
  std::vector<at::Tensor> channels;
  for (std::int64_t dim = 2; dim < input.dim(); ++dim) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
    shape[static_cast<std::size_t>(dim)] = input.size(dim);
    auto whole = input.sizes().vec();
    whole[1] = 1;
    channels.push_back((at::arange(input.size(dim), input.options()) / input.size(dim)).view(shape).expand(whole));
  }
  return at::cat(channels, 1);
}

}  // namespace

SpectralImpl::SpectralImpl(std::int64_t inputs, std::int64_t outputs, std::vector<std::int64_t> modes)
    : modes_(std::move(modes)) {
  std::int64_t count = modes_.back();
  for (std::size_t i = 0; i + 1 < modes_.size(); ++i) count *= 2 * modes_[i];
  const double scale = 1.0 / static_cast<double>(inputs);
  weight_ = register_parameter("weight", at::randn({inputs, outputs, count, 2}) * (scale / 2));
}

at::Tensor SpectralImpl::keep_lowest(at::Tensor spectrum) const {
  for (std::size_t i = 0; i < modes_.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    const auto low = spectrum.narrow(dim, 0, modes_[i]);
    const bool is_last = i + 1 == modes_.size();
    spectrum = is_last ? low : at::cat({low, spectrum.narrow(dim, spectrum.size(dim) - modes_[i], modes_[i])}, dim);
  }
  return spectrum;
}

at::Tensor SpectralImpl::restore(at::Tensor lowest, at::IntArrayRef sizes) const {
  const auto last = static_cast<std::int64_t>(modes_.size()) + 1;
  lowest = at::constant_pad_nd(lowest, {0, sizes[static_cast<std::size_t>(last)] / 2 + 1 - modes_.back()});
  for (std::size_t i = 0; i + 1 < modes_.size(); ++i) {
    const auto dim = static_cast<std::int64_t>(i) + 2;
    auto gap = lowest.sizes().vec();
    gap[static_cast<std::size_t>(dim)] = sizes[static_cast<std::size_t>(dim)] - 2 * modes_[i];
    lowest = at::cat(
        {lowest.narrow(dim, 0, modes_[i]), lowest.new_zeros(gap), lowest.narrow(dim, modes_[i], modes_[i])}, dim);
  }
  return lowest;
}

at::Tensor SpectralImpl::forward(const at::Tensor& input) const {
  const auto dims = field_dims(modes_.size());
  // There is no transform in bf16, and one in fp16 only for some sizes.
  const auto field = at::isReducedFloatingType(input.scalar_type()) ? input.to(at::kFloat) : input;
  const auto lowest = keep_lowest(at::fft_rfftn(field, {}, dims));
  const auto mixed = at::einsum("bim,iom->bom", {lowest.flatten(2), at::view_as_complex(weight_)});
  auto shape = lowest.sizes().vec();
  shape[1] = weight_.size(1);
  return at::fft_irfftn(restore(mixed.reshape(shape), input.sizes()), input.sizes().slice(2), dims);
}

FourierOperator::FourierOperator(const Section& section)
    : inputs_(section.integer("in_channels", 1)),
      outputs_(section.integer("out_channels", 1)),
      modes_(section.integers("modes", 1)),
      activation_(read_activation(section, "activation", "gelu")),
      has_coordinates_(section.flag("coordinates", true)) {
  const auto dims = static_cast<std::int64_t>(modes_.size());
  if (dims < 1 || dims > 3) throw section.error("modes", "expected 1 to 3 numbers, one for each dimension");
  const auto width = section.integer("width", 1, 32);
  const auto depth = section.integer("depth", 1, 4);
  const auto pointwise = [&](std::int64_t inputs, std::int64_t outputs) {
    return Convolution(ConvolutionImpl::Shape{dims, inputs, outputs, 1, false});
  };
  lift_ = register_module("lift", pointwise(inputs_ + (has_coordinates_ ? dims : 0), width));
  for (std::int64_t i = 0; i < depth; ++i) {
    spectral_.push_back(register_module(text::concat("spectral", i), Spectral(width, width, modes_)));
    pointwise_.push_back(register_module(text::concat("pointwise", i), pointwise(width, width)));
  }
  hidden_ = register_module("hidden", pointwise(width, 2 * width));
  last_ = register_module("last", pointwise(2 * width, outputs_));
}

void FourierOperator::require_resolution(const at::Tensor& input) const {
  bool fits = input.dim() == static_cast<std::int64_t>(modes_.size()) + 2;
  for (std::size_t i = 0; fits && i < modes_.size(); ++i) {
    const auto size = input.size(static_cast<std::int64_t>(i) + 2);
    fits = i + 1 == modes_.size() ? modes_[i] <= size / 2 + 1 : 2 * modes_[i] <= size;
  }
  if (fits) return;
  throw UsageError(
      {.what = text::concat("The input has the shape ", input.sizes(), "; this operator expects ", modes_.size(),
                            " dimensions after the channels, which hold its modes ", text::join(modes_)),
       .why = "a field of n points has n / 2 modes",
       .hint = "use fewer modes, or a finer field"});
}

at::Tensor FourierOperator::compute(const at::Tensor& input) {
  require_features(input, 1, inputs_, static_cast<std::int64_t>(modes_.size()) + 2);
  require_resolution(input);
  auto x = lift_(has_coordinates_ ? at::cat({input, coordinates_of(input)}, 1) : input);
  for (std::size_t i = 0; i < spectral_.size(); ++i) {
    const auto sum = spectral_[i](x) + pointwise_[i](x);
    x = i + 1 < spectral_.size() ? activation_(sum) : sum;
  }
  return last_(activation_(hidden_(x)));
}

}  // namespace hortator::simulation
