#include "packed/packed_weight.hpp"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "packed/packed_products.hpp"

namespace hortator::packed {
namespace {

/// Under autocast products are computed in its type.
at::Tensor as_computed(const at::Tensor& x) {
  const auto device = x.device().type();
  const bool is_cast = at::autocast::is_autocast_enabled(device) && x.scalar_type() != at::kDouble;
  return is_cast ? x.to(at::autocast::get_autocast_dtype(device)) : x;
}

}  // namespace

std::vector<std::int64_t> PackedWeight::sizes_of_layer() const {
  if (is_transposed_) return {layout_.inputs, layout_.outputs};
  return {layout_.outputs, layout_.inputs};
}

void PackedWeight::refuse(const paging::WeightCall& call, const char* why) const {
  throw UsageError({.what = text::concat(call.op.operator_name().name, " was called on ",
                                         text::quote(name_ + ".weight"), ", which quantise() has packed"),
                    .why = why,
                    .hint = "name the layer in QuantiseOptions::skip"});
}

bool PackedWeight::run(const paging::WeightCall& call) {
  if (call.use != paging::WeightUse::product) refuse(call, "only products with the whole matrix are computed");
  if (!paging::reads_as_layer(call, is_transposed_)) refuse(call, "it does not read the matrix as the layer does");
  const auto x = as_computed(call.tensor(call.position - 1));
  if (!x.is_cpu()) refuse(call, "packed weights are computed on CPUs");
  if (x.dim() == 0 || x.size(-1) != layout_.inputs || !x.is_floating_point()) {
    throw UsageError({.what = text::concat("The layer ", text::quote(name_), " got a tensor ", x.sizes(), " of type ",
                                           x.scalar_type()),
                      .why = text::concat("its inputs are floating-point numbers, ", layout_.inputs, " in a row")});
  }
  auto result = product(layout_, x, call.weight);
  if (call.op.operator_name().name == "aten::addmm") {
    const auto beta = call.argument(3).toScalar(), alpha = call.argument(4).toScalar();
    result = at::add(call.tensor(0) * beta, result, alpha).to(result.scalar_type());
  } else if (call.is_linear() && call.tensor(2).defined()) {
    result = result + call.tensor(2).to(result.scalar_type());
  }
  torch::jit::drop(call.stack, call.count());
  call.stack.emplace_back(std::move(result));
  return true;
}

}  // namespace hortator::packed
