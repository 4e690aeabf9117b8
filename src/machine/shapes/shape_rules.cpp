#include "machine/shapes/shape_rules.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <array>
#include <functional>

namespace hortator::machine {
namespace {

using Arguments = c10::ArrayRef<c10::IValue>;
using Results = std::vector<c10::IValue>;
using Sizes = std::vector<std::int64_t>;

at::Tensor like(const at::Tensor& tensor) { return at::empty_like(tensor); }
at::Tensor packed_like(const at::Tensor& tensor) { return at::empty_like(tensor, at::MemoryFormat::Contiguous); }
at::Tensor sized(const at::Tensor& tensor, const Sizes& sizes) { return at::empty(sizes, tensor.options()); }
at::Tensor like_if(bool wanted, const c10::IValue& tensor) {
  return wanted && tensor.isTensor() && tensor.toTensor().defined() ? like(tensor.toTensor()) : at::Tensor();
}

Results first_alone(Arguments arguments) { return {like(arguments[0].toTensor())}; }
Results second_alone(Arguments arguments) { return {like(arguments[1].toTensor())}; }
Results scalar_of_first(Arguments arguments) { return {sized(arguments[0].toTensor(), {})}; }

// input, normalized_shape, weight, bias, eps
Results layer_norm(Arguments arguments) {
  const auto input = arguments[0].toTensor();
  Sizes sizes = input.sizes().vec();
  const auto normalised = arguments[1].toIntVector().size();
  std::fill(sizes.end() - static_cast<std::ptrdiff_t>(normalised), sizes.end(), 1);
  return {packed_like(input), sized(input, sizes), sized(input, sizes)};
}

// grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
Results layer_norm_backward(Arguments arguments) {
  const auto wanted = arguments[7].toBoolList();
  return {like_if(wanted.get(0), arguments[1]), like_if(wanted.get(1), arguments[5]),
          like_if(wanted.get(2), arguments[6])};
}

// query, key, value, ...; the result has the strides of the query
Results attention(Arguments arguments) {
  const auto query = arguments[0].toTensor();
  const auto value = arguments[2].toTensor();
  const auto result = value.size(-1) == query.size(-1)
                          ? like(query)
                          : sized(query, {query.size(0), query.size(1), query.size(2), value.size(-1)});
  const auto sums = at::empty({query.size(0), query.size(2), query.size(1)}, query.options().dtype(at::kFloat));
  return {result, sums.transpose(1, 2)};
}

// grad_out, query, key, value, ...
Results attention_backward(Arguments arguments) {
  return {like(arguments[1].toTensor()), like(arguments[2].toTensor()), like(arguments[3].toTensor())};
}

// self, dim, index
Results index_select(Arguments arguments) {
  const auto self = arguments[0].toTensor();
  Sizes sizes = self.sizes().vec();
  const auto dim = arguments[1].toInt();
  if (!sizes.empty())
    sizes[static_cast<std::size_t>(dim < 0 ? dim + self.dim() : dim)] = arguments[2].toTensor().numel();
  return {sized(self, sizes)};
}

// grad_output, indices, num_weights, ...
Results embedding_backward(Arguments arguments) {
  const auto gradient = arguments[0].toTensor();
  return {sized(gradient, {arguments[2].toInt(), gradient.size(-1)})};
}

std::int64_t element(const c10::IValue& list, std::size_t i) {
  const auto numbers = list.toIntVector();
  return numbers.size() == 1 ? numbers.front() : numbers.at(i);
}

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
Results convolution(Arguments arguments) {
  const auto input = arguments[0].toTensor();
  const auto weight = arguments[1].toTensor();
  const bool is_transposed = arguments[6].toBool();
  Sizes sizes = {input.size(0), is_transposed ? weight.size(1) * arguments[8].toInt() : weight.size(0)};
  for (std::int64_t dim = 2; dim < weight.dim(); ++dim) {
    const auto i = static_cast<std::size_t>(dim - 2);
    const auto reach = element(arguments[5], i) * (weight.size(dim) - 1) + 1;
    const auto stride = element(arguments[3], i);
    const auto margin = 2 * element(arguments[4], i);
    sizes.push_back(is_transposed ? (input.size(dim) - 1) * stride - margin + reach + element(arguments[7], i)
                                  : (input.size(dim) + margin - reach) / stride + 1);
    TORCH_CHECK(sizes.back() > 0, "Calculated output size is too small for an input of ", input.sizes());
  }
  TORCH_CHECK(is_transposed || input.size(1) == weight.size(1) * arguments[8].toInt(), "expected input to have ",
              weight.size(1) * arguments[8].toInt(), " channels, but got ", input.size(1), " channels instead");
  return {at::empty(sizes, input.options().memory_format(input.suggest_memory_format()))};
}

// grad_output, input, weight, bias_sizes, ..., output_mask
Results convolution_backward(Arguments arguments) {
  const auto wanted = arguments[10].toBoolList();
  const auto weight = arguments[2].toTensor();
  const auto bias = wanted.get(2) ? sized(weight, {arguments[0].toTensor().size(1)}) : at::Tensor();
  return {like_if(wanted.get(0), arguments[1]), like_if(wanted.get(1), arguments[2]), bias};
}

// input, weight, bias, running_mean, running_var, training, ...
Results batch_norm(Arguments arguments) {
  const auto input = arguments[0].toTensor();
  const Sizes channels = {arguments[5].toBool() ? input.size(1) : 0};
  return {like(input), sized(input, channels), sized(input, channels)};
}

// grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
Results batch_norm_backward(Arguments arguments) {
  const auto wanted = arguments[9].toBoolList();
  const auto input = arguments[1].toTensor();
  const auto of_channels = [&](bool is_wanted) { return is_wanted ? sized(input, {input.size(1)}) : at::Tensor(); };
  return {like_if(wanted.get(0), arguments[1]), of_channels(wanted.get(1)), of_channels(wanted.get(2))};
}

// input, weight, bias, N, C, HxW, group, eps
Results group_norm(Arguments arguments) {
  const auto input = arguments[0].toTensor();
  const Sizes groups = {arguments[3].toInt(), arguments[6].toInt()};
  return {packed_like(input), sized(input, groups), sized(input, groups)};
}

// grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
Results group_norm_backward(Arguments arguments) {
  const auto wanted = arguments[9].toBoolList();
  const auto input = arguments[1].toTensor();
  const auto of_channels = [&](bool is_wanted) {
    return is_wanted ? sized(input, {arguments[6].toInt()}) : at::Tensor();
  };
  return {like_if(wanted.get(0), arguments[1]), of_channels(wanted.get(1)), of_channels(wanted.get(2))};
}

// input, p, train
Results dropout(Arguments arguments) {
  const auto input = arguments[0].toTensor();
  return {like(input), at::empty_like(input, input.options().dtype(at::kBool))};
}

// condition, self, other
Results where(Arguments arguments) {
  const auto self = arguments[1].toTensor();
  const auto other = arguments[2].toTensor();
  const auto sizes = at::infer_size(at::infer_size(arguments[0].toTensor().sizes(), self.sizes()), other.sizes());
  return {at::empty(sizes, self.options().dtype(at::result_type(self, other)))};
}

// tensors, dim
Results stack(Arguments arguments) {
  const auto tensors = arguments[0].toTensorVector();
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  Sizes sizes = tensors.front().sizes().vec();
  const auto dim = arguments[1].toInt();
  const auto position = dim < 0 ? dim + static_cast<std::int64_t>(sizes.size()) + 1 : dim;
  for (const auto& tensor : tensors)
    TORCH_CHECK(tensor.sizes() == tensors.front().sizes(), "stack expects each tensor to be equal size, but got ",
                tensors.front().sizes(), " and ", tensor.sizes());
  sizes.insert(sizes.begin() + position, static_cast<std::int64_t>(tensors.size()));
  return {sized(tensors.front(), sizes)};
}

// self, output_size
Results adaptive_pool(Arguments arguments) {
  const auto self = arguments[0].toTensor();
  Sizes sizes = self.sizes().vec();
  const auto last = arguments[1].toIntVector();
  std::copy(last.begin(), last.end(), sizes.end() - static_cast<std::ptrdiff_t>(last.size()));
  return {at::empty(sizes, self.options().memory_format(self.suggest_memory_format()))};
}

// self, dims, keepdim; the kernel has exponentials of all elements for a moment
Results logsumexp(Arguments arguments) {
  const auto self = arguments[0].toTensor();
  const auto exponentials = packed_like(self);
  Sizes sizes = self.sizes().vec();
  auto dims = arguments[1].toIntVector();
  for (auto& dim : dims) dim = dim < 0 ? dim + self.dim() : dim;
  std::ranges::sort(dims, std::greater());
  for (const auto dim : dims) {
    const auto at = sizes.begin() + dim;
    arguments[2].toBool() ? void(*at = 1) : void(sizes.erase(at));
  }
  return {sized(self, sizes)};
}

struct NamedRule {
  std::string_view name;
  ShapeRule rule;
};

constexpr std::array rules = {
    NamedRule{"aten::native_layer_norm", layer_norm},
    NamedRule{"aten::native_layer_norm_backward", layer_norm_backward},
    NamedRule{"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    NamedRule{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
    NamedRule{"aten::index_select", index_select},
    NamedRule{"aten::embedding_dense_backward", embedding_backward},
    NamedRule{"aten::convolution", convolution},
    NamedRule{"aten::convolution_backward", convolution_backward},
    NamedRule{"aten::native_batch_norm", batch_norm},
    NamedRule{"aten::native_batch_norm_backward", batch_norm_backward},
    NamedRule{"aten::native_group_norm", group_norm},
    NamedRule{"aten::native_group_norm_backward", group_norm_backward},
    NamedRule{"aten::native_dropout", dropout},
    NamedRule{"aten::where", where},
    NamedRule{"aten::stack", stack},
    NamedRule{"aten::logsumexp", logsumexp},
    NamedRule{"aten::_adaptive_avg_pool2d", adaptive_pool},
    NamedRule{"aten::_adaptive_avg_pool2d_backward", second_alone},
    NamedRule{"aten::dot", scalar_of_first},
    NamedRule{"aten::vdot", scalar_of_first},
    NamedRule{"aten::flip", first_alone},
    NamedRule{"aten::roll", first_alone},
    NamedRule{"aten::relu", first_alone},
    NamedRule{"aten::abs", first_alone},
};

}  // namespace

ShapeRule shape_rule(std::string_view name) {
  const auto* const found = std::ranges::find(rules, name, &NamedRule::name);
  return found == rules.end() ? nullptr : found->rule;
}

}  // namespace hortator::machine
