#include "packed/packed_products.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <span>
#include <vector>

#include "interception/claimed_operators.hpp"
#include "packed/formats/float_product.hpp"
#include "packed/packed_rows.hpp"

namespace hortator::packed {
namespace {

/// Calls work(rows of W, the first one's number) for some rows at a time.
template <typename Work>
void in_unpacked_parts(const PackedLayout& layout, const at::Tensor& bytes, at::ScalarType type, const Work& work) {
  constexpr std::int64_t elements = std::int64_t{1} << 22;
  const auto step = std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, layout.inputs), 1, layout.outputs);
  for (std::int64_t begin = 0; begin < layout.outputs; begin += step) {
    const auto end = std::min(layout.outputs, begin + step);
    work(unpacked_rows(layout, bytes, begin, end).to(type), begin);
  }
}

/// [rows, inputs] to [rows, outputs]
at::Tensor forward_product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& weight) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);  // x has the chosen type
  const interception::Hold present(std::span(&weight, 1), interception::Access::read);
  const bool is_short = x.size(0) > 0 && x.size(0) <= max_direct_rows && x.scalar_type() == at::kFloat;
  if (is_short) {
    if (auto y = layout.numbers().direct_product(layout, x, weight); y.defined()) return y;
  }
  auto y = at::empty({x.size(0), layout.outputs}, x.options());
  in_unpacked_parts(layout, weight, x.scalar_type(), [&](const at::Tensor& rows, std::int64_t begin) {
    y.narrow(1, begin, rows.size(0)).copy_(at::linear(x, rows));
  });
  return y;
}

struct PackedProduct : torch::autograd::Function<PackedProduct> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const PackedLayout& layout) {
    context->saved_data["weight"] = weight;
    context->saved_data["layout"] = std::vector<std::int64_t>{static_cast<std::int64_t>(layout.format), layout.outputs,
                                                              layout.inputs, layout.group};
    return forward_product(layout, x, weight);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto saved = context->saved_data["layout"].toIntVector();
    const PackedLayout layout{
        .format = static_cast<WeightFormat>(saved[0]), .outputs = saved[1], .inputs = saved[2], .group = saved[3]};
    return {backward_product(layout, gradients[0].contiguous(), context->saved_data["weight"].toTensor()), {}, {}};
  }
};

}  // namespace

at::Tensor product(const PackedLayout& layout, const at::Tensor& x, const at::Tensor& weight) {
  auto sizes = x.sizes().vec();
  sizes.back() = layout.outputs;
  const auto rows = x.reshape({-1, layout.inputs}).contiguous();
  const bool learns = at::GradMode::is_enabled() && rows.requires_grad();
  const auto y = learns ? PackedProduct::apply(rows, weight, layout) : forward_product(layout, rows.detach(), weight);
  return y.view(sizes);
}

at::Tensor backward_product(const PackedLayout& layout, const at::Tensor& y, const at::Tensor& weight) {
  const interception::Hold present(std::span(&weight, 1), interception::Access::read);
  auto sum = at::zeros({y.size(0), layout.inputs}, y.options());
  in_unpacked_parts(layout, weight, y.scalar_type(), [&](const at::Tensor& rows, std::int64_t begin) {
    sum.addmm_(y.narrow(1, begin, rows.size(0)), rows);
  });
  return sum;
}

at::Tensor rows_at(const PackedLayout& layout, const at::Tensor& weight, const at::Tensor& numbers) {
  const interception::Hold present(std::span(&weight, 1), interception::Access::read);
  auto sizes = numbers.sizes().vec();
  sizes.push_back(layout.inputs);
  return unpacked_rows_at(layout, weight, numbers.reshape({-1})).view(sizes);
}

}  // namespace hortator::packed
