#include "parallel/experts/divided_experts.hpp"

#include <hortator/error.hpp>
#include <hortator/nn/moe.hpp>
#include <vector>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

std::vector<nn::MoEImpl*> layers_of(torch::nn::Module& module) {
  std::vector<nn::MoEImpl*> layers;
  if (auto* layer = module.as<nn::MoEImpl>()) layers.push_back(layer);
  for (const auto& one : module.modules(/*include_self=*/false)) {
    if (auto* layer = one->as<nn::MoEImpl>()) layers.push_back(layer);
  }
  return layers;
}

void require_divisible(const nn::MoEImpl& layer, int ranks) {
  const auto experts = layer.options().experts;
  if (experts % ranks == 0) return;
  throw UsageError({.what = text::concat("A hortator::nn::MoE has ", text::count(experts, "expert"),
                                         ", and parallel.experts is ", ranks),
                    .why = "each rank of a group holds the same number of experts",
                    .hint = "use a divisor of the number of experts"});
}

}  // namespace

bool has_experts(torch::nn::Module& module) { return !layers_of(module).empty(); }

void check_experts(torch::nn::Module& module, int ranks) {
  const auto layers = layers_of(module);
  if (layers.empty()) {
    throw UsageError({.what = text::concat("parallel.experts is ", ranks, ", and the model has no experts"),
                      .why = "only the experts of hortator::nn::MoE layers are divided",
                      .hint = "leave parallel.experts out, or build the model's mixtures of experts from that layer"});
  }
  for (const auto* layer : layers) require_divisible(*layer, ranks);
  DividedModule::check_undivided(module);
}

std::unique_ptr<DividedModule> divide_experts(torch::nn::Module& module, const SharedRanks& ranks,
                                              const DividedModule::Settle& settle) {
  std::vector<at::Tensor> parameters;
  for (const auto* layer : layers_of(module))
    parameters.insert(parameters.end(), {layer->experts->gate_up_proj, layer->experts->down_proj});
  return std::make_unique<DividedModule>(module, parameters, Division{.dim = 0}, ranks, settle);
}

void count_tokens_over(torch::nn::Module& module, const SharedRanks& ranks) {
  for (auto* layer : layers_of(module)) layer->count_over(ranks);
}

}  // namespace hortator::parallel
