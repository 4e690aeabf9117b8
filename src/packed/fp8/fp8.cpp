#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/fp8.hpp>

#include "adapters/layers.hpp"
#include "adapters/targets.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/weight_operators.hpp"
#include "packed/fp8/fp8_weight.hpp"

namespace hortator {
namespace {

using adapters::Layer;

[[noreturn]] void refuse_option(const std::string& what, const char* why) {
  throw UsageError({.what = "Fp8Options::" + what, .why = why});
}

void require_valid(const Fp8Options& options, const std::vector<Layer>& layers) {
  if (options.amax_history_length < 1)
    refuse_option(
        text::concat("amax_history_length: expected a whole number from 1, got ", options.amax_history_length),
        "it counts steps");
  constexpr std::int64_t most = 16;
  if (options.margin < 0 || options.margin > most)
    refuse_option(text::concat("margin: expected a whole number from 0 to 16, got ", options.margin),
                  "values of 8 bits have no more room");
  for (const auto& name : options.skip) {
    if (std::ranges::any_of(layers, [&](const Layer& layer) { return adapters::ends_with_name(layer.name, name); }))
      continue;
    refuse_option(text::concat("skip: the model has no layer ", text::quote(name)), "nothing would be skipped");
  }
}

bool has_tiles(const Layer& layer) {
  constexpr std::int64_t tile = 16;
  return layer.inputs() % tile == 0 && layer.outputs() % tile == 0;
}

void require_free(const Layer& layer) {
  if (!interception::carries_divided_key(layer.weight)) return;
  throw UsageError(
      {.what = text::concat("fp8(): the weight ", text::quote(layer.name + ".weight"), " is divided among ranks"),
       .why = "each rank would have other scales",
       .hint = "use bf16 with parallel.tensor"});
}

}  // namespace

std::vector<std::string> detail::fp8(torch::nn::Module& module, const Fp8Options& options) {
  const auto layers = adapters::layers_of(module).layers;
  require_valid(options, layers);
  std::vector<Layer> linear;
  for (const auto& layer : layers)
    if (layer.is_linear_class || layer.is_scoring) linear.push_back(layer);
  if (options.skip_first_and_last && !linear.empty()) {
    linear.erase(linear.begin());
    if (!linear.empty()) linear.pop_back();
  }
  const auto is_left_out = [&](const Layer& layer) {
    const bool is_named =
        std::ranges::any_of(options.skip, [&](const auto& name) { return adapters::ends_with_name(layer.name, name); });
    return is_named || !layer.is_linear_class || !has_tiles(layer) || interception::is_packed(layer.weight);
  };
  std::erase_if(linear, is_left_out);
  std::vector<std::string> names;
  for (const auto& layer : linear) {
    require_free(layer);
    const bool is_transposed = layer.kind == adapters::LayerKind::transposed;
    interception::attach_to_weight(
        layer.weight, interception::WeightLayer::fp8,
        std::make_shared<packed::Fp8Weight>(layer.name, is_transposed, layer.module, options));
    names.push_back(layer.name);
  }
  if (!names.empty()) return names;
  throw UsageError(
      {.what = "fp8(): the model has no linear layer that can compute in 8 bits",
       .why = options.skip_first_and_last
                  ? "layers need sizes that are multiples of 16, and the first and the last one stay as they are"
                  : "layers need sizes that are multiples of 16",
       .hint = "use bf16, or look at Fp8Options"});
}

}  // namespace hortator
