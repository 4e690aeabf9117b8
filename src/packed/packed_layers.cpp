#include "packed/packed_layers.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <hortator/error.hpp>
#include <memory>
#include <set>

#include "adapters/layers.hpp"
#include "adapters/targets.hpp"
#include "core/text/text.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/weight_operators.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "packed/packed_weight.hpp"
#include "packed/packing.hpp"
#include "paging/deferred/construction_scope.hpp"

namespace hortator::packed {
namespace {

constexpr std::int64_t smallest_group = 16;
constexpr const char* not_read_yet = "the packed weight has no values: the loading that was to fill it has failed";

using Impl = const c10::TensorImpl*;

void require_group(const QuantiseOptions& options) {
  const auto group = options.group;
  if (group >= smallest_group && std::has_single_bit(static_cast<std::uint64_t>(group))) return;
  throw UsageError({.what = text::concat("QuantiseOptions::group: expected a power of two from 16, got ", group),
                    .why = "that many weights share a scale",
                    .hint = "64 is usual"});
}

void require_compute_type(const QuantiseOptions& options) {
  if (!options.compute_dtype || at::isFloatingType(*options.compute_dtype)) return;
  throw UsageError({.what = text::concat("QuantiseOptions::compute_dtype: expected a floating-point type, got ",
                                         *options.compute_dtype)});
}

void require_known(const QuantiseOptions& options, const std::vector<adapters::Layer>& layers) {
  for (const auto& name : options.skip) {
    const bool is_known =
        std::ranges::any_of(layers, [&](const auto& layer) { return adapters::ends_with_name(layer.name, name); });
    if (!is_known)
      throw UsageError({.what = text::concat("QuantiseOptions::skip: the model has no layer ", text::quote(name)),
                        .hint = "names are those of modules, or their ends from a dot on"});
  }
}

void require_scoring_layer(const QuantiseOptions& options, const std::vector<adapters::Layer>& layers) {
  if (!options.scoring || std::ranges::any_of(layers, &adapters::Layer::is_scoring)) return;
  throw UsageError({.what = "QuantiseOptions::scoring: the model has no layer that scores tokens",
                    .why = "nothing would be packed in this format",
                    .hint = "leave .scoring out, or let the model derive from HasTiedLayers and name the layer"});
}

void require_free(const adapters::Layer& layer) {
  const auto& weight = layer.weight;
  const auto refuse = [&](const char* state, const char* hint) {
    throw UsageError(
        {.what = text::concat("quantise(): the weight ", text::quote(layer.name + ".weight"), " is ", state),
         .hint = hint});
  };
  if (interception::is_packed(weight))
    refuse("packed already", "call it once, and not for a checkpoint that is packed");
  if (interception::carries_divided_key(weight)) refuse("divided among ranks", "call it before prepare()");
  if (!weight.is_cpu()) refuse("on a device", "packed weights are computed on CPUs: leave the model there");
}

/// The scales of int4 are numbers of 16 bits. Weights that are not finite have an error of their own.
void require_in_half(const PackableLayer& layer, float largest) {
  constexpr float most = 65504, least = 1e-5F;
  if (largest == 0 || !(std::isfinite(largest) && (largest > most || largest < least))) return;
  throw UsageError({.what = text::concat("quantise(): the largest absolute value of the weight ",
                                         text::quote(layer.weight_name()), " is ", largest),
                    .why = "scales of int4 are numbers of 16 bits, for values from 1e-5 to 65504",
                    .hint = "use int8_groups or nf4, or name the layer in QuantiseOptions::skip"});
}

/// Decides which layers are packed.
class LayerChoice {
 public:
  LayerChoice(const std::vector<adapters::Layer>& layers, const QuantiseOptions& options) : options_(options) {
    for (const auto& layer : layers)
      if (layer.is_scoring && options.scoring && !is_named(layer)) scoring_ = layer.weight.unsafeGetTensorImpl();
    for (const auto& layer : layers)
      if (!may_be_packed(layer)) kept_.insert(layer.weight.unsafeGetTensorImpl());
  }

  /// True once for each weight.
  bool takes(const adapters::Layer& layer) {
    return may_be_packed(layer) && kept_.insert(layer.weight.unsafeGetTensorImpl()).second;
  }
  WeightFormat format_of(const adapters::Layer& layer) const {
    return is_scoring(layer) ? *options_.scoring : options_.format;
  }

 private:
  bool is_named(const adapters::Layer& layer) const {
    return std::ranges::any_of(options_.skip,
                               [&](const auto& name) { return adapters::ends_with_name(layer.name, name); });
  }
  /// Scores tokens, or is the embedding that has the same weight.
  bool is_scoring(const adapters::Layer& layer) const {
    return scoring_ != nullptr && layer.weight.unsafeGetTensorImpl() == scoring_;
  }
  bool may_be_packed(const adapters::Layer& layer) const {
    if (is_named(layer) || std::ranges::find(layer.sizes, 0) != layer.sizes.end()) return false;
    return is_scoring(layer) || (layer.is_linear_class && !layer.is_scoring);
  }

  const QuantiseOptions& options_;
  Impl scoring_ = nullptr;
  std::set<Impl> kept_;  ///< also used by a layer that stays as it is, or chosen already
};

}  // namespace

std::vector<PackableLayer> packable_layers(const torch::nn::Module& module, const QuantiseOptions& options) {
  require_group(options);
  require_compute_type(options);
  const auto layers = adapters::layers_of(module).layers;
  require_known(options, layers);
  require_scoring_layer(options, layers);
  LayerChoice choice(layers, options);
  std::vector<PackableLayer> chosen;
  for (const auto& layer : layers) {
    if (!choice.takes(layer)) continue;
    require_free(layer);
    const bool is_transposed = layer.kind == adapters::LayerKind::transposed;
    chosen.push_back({.name = layer.name,
                      .weight = layer.weight,
                      .layout = {.format = choice.format_of(layer),
                                 .outputs = layer.sizes.at(is_transposed ? 1 : 0),
                                 .inputs = layer.sizes.at(is_transposed ? 0 : 1),
                                 .group = options.group},
                      .is_transposed = is_transposed,
                      .type = layer.weight.scalar_type(),
                      .compute_type = options.compute_dtype});
  }
  if (chosen.empty())
    throw UsageError({.what = "quantise(): the model has no linear layer that can be packed",
                      .why = "layers of torch::nn::Linear and modules that derive from HasTransposedWeight are",
                      .hint = "look at QuantiseOptions::skip"});
  return chosen;
}

at::Tensor values_of(const PackableLayer& layer, const at::Tensor& weight) {
  const at::NoGradGuard no_grad;
  auto values = (layer.is_transposed ? weight.detach().t() : weight.detach()).to(at::kFloat).contiguous();
  const auto [low, high] = at::aminmax(values);  // without a copy of the matrix, as abs() makes
  const auto largest = std::max(-low.item<float>(), high.item<float>());
  if (layer.layout.numbers().has_half_scales()) require_in_half(layer, largest);
  if (std::isfinite(largest)) return values;
  throw UsageError({.what = text::concat("quantise(): the weight ", text::quote(layer.weight_name()),
                                         " has values that are not finite"),
                    .why = "one of them would spoil all weights with the same scale",
                    .hint = "take a checkpoint from before the training diverged"});
}

void become_packed(const PackableLayer& layer) {
  if (const auto own = packed_layer_of(layer.weight); own && own->layout == layer.layout) return;
  const at::NoGradGuard no_grad;
  paging::drop_values(layer.weight, not_read_yet);
  const auto absent = at::empty({layer.layout.bytes(), 1}, at::kByte);
  paging::drop_values(absent, not_read_yet);
  layer.weight.requires_grad_(false);
  layer.weight.mutable_grad().reset();
  layer.weight.set_data(absent);
  interception::attach_to_weight(layer.weight, interception::WeightLayer::packed,
                                 std::make_shared<PackedWeight>(layer));
}

void pack_in_place(const PackableLayer& layer) {
  const at::NoGradGuard no_grad;
  const machine::RecyclingAllocator blocks(0);  // float32 leaves no holes between packed weights
  paging::settle(layer.weight);
  const auto values = values_of(layer, layer.weight);
  layer.weight.requires_grad_(false);
  layer.weight.mutable_grad().reset();
  layer.weight.set_data(pack(values, layer.layout));
  interception::attach_to_weight(layer.weight, interception::WeightLayer::packed,
                                 std::make_shared<PackedWeight>(layer));
}

std::optional<PackableLayer> packed_layer_of(const at::Tensor& weight) {
  const auto found =
      std::dynamic_pointer_cast<PackedWeight>(interception::operator_of(weight, interception::WeightLayer::packed));
  if (!found) return {};
  auto layer = found->layer();
  layer.weight = weight;
  return layer;
}

}  // namespace hortator::packed
