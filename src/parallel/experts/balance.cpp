// Losses that keep routers from preferring some of the experts.
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/nn/moe.hpp>
#include <vector>

#include "core/text/text.hpp"
#include "parallel/tensor/conjugates.hpp"

namespace hortator::nn {
namespace {

std::vector<const MoEImpl*> layers_of(const torch::nn::Module& model) {
  std::vector<const MoEImpl*> layers;
  for (const auto& one : model.modules(/*include_self=*/false)) {
    if (const auto* layer = one->as<MoEImpl>()) layers.push_back(layer);
  }
  if (const auto* layer = model.as<MoEImpl>()) layers.push_back(layer);
  if (layers.empty()) {
    throw UsageError({.what = "The model has no hortator::nn::MoE",
                      .why = "the loss is that of the routers of its mixtures of experts",
                      .hint = "pass the module that contains them"});
  }
  return layers;
}

void require_run(const std::vector<const MoEImpl*>& layers) {
  const auto has_run = [](const MoEImpl* layer) { return layer->routing().logits.defined(); };
  if (std::ranges::all_of(layers, has_run)) return;
  throw UsageError({.what = "A hortator::nn::MoE of the model has not computed anything yet",
                    .why = "the loss is that of its newest forward",
                    .hint = "call the model first"});
}

void require_equal(const std::vector<const MoEImpl*>& layers) {
  const auto experts = layers.front()->options().experts;
  const auto is_other = [&](const MoEImpl* layer) { return layer->options().experts != experts; };
  const auto other = std::ranges::find_if(layers, is_other);
  if (other == layers.end()) return;
  throw UsageError({.what = text::concat("load_balancing_loss got MoE layers of ", experts, " and of ",
                                         (*other)->options().experts, " experts"),
                    .why = "the tokens of all layers count together",
                    .hint = "add up the losses of the layers, each passed alone"});
}

/// The weight of each token, [tokens]: 1 if all count.
at::Tensor token_weights(const at::Tensor& attention_mask, const Routing& routing, const char* loss) {
  const auto options = routing.probabilities.options().requires_grad(false);
  if (!attention_mask.defined()) return at::ones({routing.logits.size(0)}, options);
  if (attention_mask.numel() != routing.logits.size(0)) {
    throw UsageError({.what = text::concat(loss, " got a mask of ", attention_mask.numel(), " tokens"),
                      .why = text::concat("the newest forward had ", routing.logits.size(0))});
  }
  return attention_mask.reshape({-1}).to(options);
}

/// How often each expert is chosen, with the number of tokens behind.
at::Tensor loads_of(const Routing& routing, const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  const auto experts = routing.logits.size(1);
  const auto options = routing.probabilities.options().requires_grad(false);
  const auto loads = at::zeros({experts + 1}, options);
  const auto per_choice = weights.unsqueeze(1).expand_as(routing.chosen).reshape({-1});
  loads.narrow(0, 0, experts).scatter_add_(0, routing.chosen.reshape({-1}), per_choice);
  loads[experts] = weights.sum();
  return loads;
}

/// The ranks whose tokens count together; null if those of this rank count alone.
parallel::SharedRanks counted_over(const std::vector<const MoEImpl*>& layers) {
  const auto* layer = layers.front();
  return layer->is_training() && at::GradMode::is_enabled() ? layer->counted_over() : nullptr;
}

void add(at::Tensor& sum, const at::Tensor& more) { sum = sum.defined() ? sum + more : more; }

}  // namespace

// Only the probabilities have gradients, not the loads, and they are sums over tokens: with the loads of all ranks,
// the ranks' losses have the mean that one rank would compute.
at::Tensor load_balancing_loss(const torch::nn::Module& model, const at::Tensor& attention_mask) {
  const auto layers = layers_of(model);
  const auto ranks = counted_over(layers);
  at::Tensor loads, probabilities;
  parallel::all_or_none(ranks, [&] {
    require_run(layers);
    require_equal(layers);
    for (const auto* layer : layers) {
      const auto& routing = layer->routing();
      const auto weights = token_weights(attention_mask, routing, "load_balancing_loss");
      add(probabilities, (routing.probabilities * weights.unsqueeze(1)).sum(0));
      add(loads, loads_of(routing, weights));
    }
  });
  if (ranks) loads = ranks->sum(loads);
  const auto experts = layers.front()->options().experts;
  const auto tokens = loads[experts].clamp_min(1);
  const double scale = static_cast<double>(experts) * (ranks ? ranks->size() : 1);
  return (loads.narrow(0, 0, experts) / tokens * (probabilities / tokens)).sum() * scale;
}

at::Tensor router_z_loss(const torch::nn::Module& model, const at::Tensor& attention_mask) {
  const auto layers = layers_of(model);
  const auto ranks = counted_over(layers);
  at::Tensor squares, tokens;
  parallel::all_or_none(ranks, [&] {
    require_run(layers);
    for (const auto* layer : layers) {
      const auto& routing = layer->routing();
      const auto weights = token_weights(attention_mask, routing, "router_z_loss");
      const auto logits = routing.logits.to(routing.probabilities.scalar_type());
      add(squares, (at::logsumexp(logits, -1).square() * weights).sum());
      add(tokens, weights.sum().view({1}));
    }
  });
  if (ranks) tokens = ranks->sum(tokens);
  return squares / tokens[0].clamp_min(1) * (ranks ? ranks->size() : 1);
}

}  // namespace hortator::nn
