// Adapters as a part of the weight.
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "adapters/adapted_weight.hpp"
#include "core/text/text.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/weight_operators.hpp"

namespace hortator::adapters {
namespace {

void require_ordinary(const Layer& layer) {
  const auto& weight = layer.weight;
  const bool is_divided = interception::carries_divided_key(weight), is_packed = interception::is_packed(weight);
  if (!is_divided && !is_packed && !interception::claim_of(weight)) return;
  const auto* state = is_packed    ? "packed by quantise()"
                      : is_divided ? "divided among tensor ranks"
                                   : "sharded or offloaded";
  throw UsageError({.what = text::concat("merge_adapters() was called on a model whose weight ",
                                         text::quote(layer.name + ".weight"), " is ", state),
                    .why = "the adapter is added to the whole weight, in place",
                    .hint = "save the adapter, load it into a model that is not prepared, and merge there"});
}

void require_mergeable(const Layer& layer, const Adapter& adapter) {
  require_ordinary(layer);
  if (!adapter.bias.defined() && layer.groups == 1) return;
  throw UsageError({.what = text::concat(
                        "merge_adapters(): the adapter ", text::quote(adapter.name), " of ", text::quote(layer.name),
                        adapter.bias.defined() ? " has a bias (lora_bias)" : " belongs to a grouped convolution"),
                    .why = "it is more than a change of the weight",
                    .hint = "use the model with the adapter as it is"});
}

/// As a factor of each row of a linear layer's weight.
at::Tensor along_rows(const Layer& layer, const at::Tensor& factors) {
  return layer.kind == LayerKind::transposed ? factors.view({1, -1}) : factors.view({-1, 1});
}

}  // namespace

at::Tensor delta_of(const Layer& layer, const Adapter& adapter) {
  const at::NoGradGuard no_grad;
  const auto product = at::mm(adapter.b.flatten(1), adapter.a.flatten(1)) * adapter.scaling;
  if (layer.kind == LayerKind::convolution) return product.view(layer.weight.sizes());
  return layer.kind == LayerKind::linear ? product : product.t();
}

at::Tensor row_lengths(const Layer& layer, const Adapter& adapter) {
  const at::NoGradGuard no_grad;
  const auto changed = layer.weight.detach().to(adapter.a.scalar_type()) + delta_of(layer, adapter);
  return at::linalg_vector_norm(changed, 2, layer.kind == LayerKind::transposed ? 0 : 1);
}

void AdaptedWeight::merge(const std::vector<std::string>& names) {
  const at::NoGradGuard no_grad;
  for (const auto& name : names) {
    if (find(name) == nullptr || is_merged(name)) continue;
    auto& adapter = named(name);
    require_mergeable(layer_, adapter);
    auto values = weight().detach();
    const auto delta = delta_of(layer_, adapter);
    if (adapter.magnitude.defined()) {
      adapter.merged_factor = adapter.magnitude.detach() / row_lengths(layer_, adapter);
      values.copy_((values.to(delta.scalar_type()) + delta) * along_rows(layer_, adapter.merged_factor));
    } else {
      values.copy_(values.to(delta.scalar_type()) + delta);
    }
    merged_.push_back(name);
  }
  update_attachment();
}

void AdaptedWeight::unmerge() {
  const at::NoGradGuard no_grad;
  while (!merged_.empty()) {
    auto& adapter = named(merged_.back());
    require_ordinary(layer_);
    auto values = weight().detach();
    const auto delta = delta_of(layer_, adapter);
    auto before = values.to(delta.scalar_type());
    if (adapter.merged_factor.defined()) before = before / along_rows(layer_, adapter.merged_factor);
    values.copy_(before - delta);
    adapter.merged_factor.reset();
    merged_.pop_back();
  }
  update_attachment();
}

}  // namespace hortator::adapters
