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
  const auto& [outputs, inputs] = std::pair(layer_.layout.outputs, layer_.layout.inputs);
  return layer_.is_transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs};
}

void PackedWeight::refuse(const interception::WeightCall& call, const char* why) const {
  throw UsageError({.what = text::concat(call.op.operator_name().name, " was called on ",
                                         text::quote(layer_.weight_name()), ", which quantise() has packed"),
                    .why = why,
                    .hint = "name the layer in QuantiseOptions::skip"});
}

at::Tensor PackedWeight::computed(const interception::WeightCall& call) const {
  if (!interception::reads_as_layer(call, layer_.is_transposed))
    refuse(call, "it does not read the matrix as the layer does");
  const auto given = as_computed(call.tensor(call.position - 1));
  if (!given.is_cpu()) refuse(call, "packed weights are computed on CPUs");
  if (given.dim() == 0 || given.size(-1) != layer_.layout.inputs || !given.is_floating_point()) {
    throw UsageError(
        {.what = text::concat("The layer ", text::quote(layer_.name), " got a tensor ", given.sizes(), " of type ",
                              given.scalar_type()),
         .why = text::concat("its inputs are floating-point numbers, ", layer_.layout.inputs, " in a row")});
  }
  const auto x = layer_.compute_type ? given.to(*layer_.compute_type) : given;
  auto result = product(layer_.layout, x, call.weight).to(given.scalar_type());
  if (call.op.operator_name().name == "aten::addmm") {
    const auto beta = call.argument(3).toScalar(), alpha = call.argument(4).toScalar();
    return at::add(call.tensor(0) * beta, result, alpha).to(result.scalar_type());
  }
  const bool has_bias = call.is_linear() && call.tensor(2).defined();
  return has_bias ? result + call.tensor(2).to(result.scalar_type()) : result;
}

at::Tensor PackedWeight::looked_up(const interception::WeightCall& call) const {
  const auto indices = call.tensor(1);
  if (!indices.is_cpu()) refuse(call, "packed weights are looked up on CPUs");
  return rows_at(layer_.layout, call.weight, indices).to(layer_.type);
}

at::Tensor PackedWeight::gradient_of_inputs(const at::Tensor& weight, const at::Tensor& gradient) const {
  const auto type = layer_.compute_type.value_or(gradient.scalar_type());
  return backward_product(layer_.layout, gradient.to(type), weight).to(gradient.scalar_type());
}

/// Module::to(type) converts all parameters, and what becomes of the bytes is no weight.
void PackedWeight::require_bytes(const interception::WeightCall& call) const {
  const auto& weight = call.weight;
  if (weight.scalar_type() == at::kByte && weight.numel() == layer_.layout.bytes()) return;
  throw UsageError({.what = text::concat("The packed weight ", text::quote(layer_.weight_name()), " has become ",
                                         weight.sizes(), " of type ", weight.scalar_type()),
                    .why = "its bytes are lost",
                    .hint = "convert the model (net->to(type)) before quantise(), or load it again"});
}

bool PackedWeight::run(const interception::WeightCall& call) {
  require_bytes(call);
  if (call.use == interception::WeightUse::convolution)
    refuse(call, "only products with the whole matrix are computed");
  auto result = call.use == interception::WeightUse::embedding ? looked_up(call) : computed(call);
  torch::jit::drop(call.stack, call.count());
  call.stack.emplace_back(std::move(result));
  return true;
}

}  // namespace hortator::packed
