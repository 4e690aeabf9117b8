#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <hortator/error.hpp>
#include <hortator/quantise.hpp>
#include <memory>
#include <set>

#include "adapters/layers.hpp"
#include "adapters/targets.hpp"
#include "core/text/text.hpp"
#include "packed/packed_weight.hpp"
#include "packed/packing.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "paging/interception/claims.hpp"
#include "paging/interception/storage_state.hpp"

namespace hortator {
namespace {

constexpr std::int64_t smallest_group = 16;

void require_group(const QuantiseOptions& options) {
  const auto group = options.group;
  if (group >= smallest_group && std::has_single_bit(static_cast<std::uint64_t>(group))) return;
  throw UsageError({.what = text::concat("QuantiseOptions::group: expected a power of two from 16, got ", group),
                    .why = "that many weights share a scale",
                    .hint = "64 is usual"});
}

bool is_skipped(const QuantiseOptions& options, const adapters::Layer& layer) {
  if (!layer.is_linear_class || layer.is_scoring) return true;
  return std::ranges::any_of(options.skip,
                             [&](const auto& name) { return adapters::ends_with_name(layer.name, name); });
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

void require_free(const adapters::Layer& layer) {
  const auto& weight = layer.weight;
  const auto refuse = [&](const char* state, const char* hint) {
    throw UsageError(
        {.what = text::concat("quantise(): the weight ", text::quote(layer.name + ".weight"), " is ", state),
         .hint = hint});
  };
  if (paging::is_packed(weight)) refuse("packed already", "call it once");
  if (paging::carries_divided_key(weight)) refuse("divided among ranks", "call it before prepare()");
  if (paging::claim_of(weight) && !paging::is_deferred(weight))
    refuse("sharded or offloaded", "call it before prepare(), and before weights are offloaded");
  if (!weight.is_cpu()) refuse("on a device", "packed weights are computed on CPUs: leave the model there");
}

/// The parameter itself becomes the packed bytes.
void pack_layer(const adapters::Layer& layer, const QuantiseOptions& options, QuantiseReport& report) {
  const auto& weight = layer.weight;
  paging::settle(weight);
  const bool is_transposed = layer.kind == adapters::LayerKind::transposed;
  const packed::PackedLayout layout{
      .format = options.format, .outputs = layer.outputs(), .inputs = layer.inputs(), .group = options.group};
  const auto values = (is_transposed ? weight.detach().t() : weight.detach()).to(at::kFloat).contiguous();
  report.bytes_before += static_cast<std::int64_t>(weight.nbytes());
  report.bytes_after += layout.bytes();
  report.layers.push_back(layer.name);
  weight.requires_grad_(false);
  weight.mutable_grad().reset();
  weight.set_data(packed::pack(values, layout));
  paging::attach_to_weight(weight, paging::WeightLayer::packed,
                           std::make_shared<packed::PackedWeight>(layer.name, layout, is_transposed));
}

}  // namespace

WeightFormat parse_weight_format(std::string_view name) {
  if (name == "int8") return WeightFormat::int8;
  if (name == "int4") return WeightFormat::int4;
  if (name == "nf4") return WeightFormat::nf4;
  throw UsageError(
      {.what = text::concat("Expected int8, int4 or nf4 as the format of weights, got ", text::quote(name))});
}

QuantiseReport detail::quantise(torch::nn::Module& module, const QuantiseOptions& options) {
  require_group(options);
  const auto layers = adapters::layers_of(module).layers;
  require_known(options, layers);
  const at::NoGradGuard no_grad;
  std::vector<adapters::Layer> chosen;
  std::set<const c10::TensorImpl*> kept;  // also used by a layer that stays as it is
  for (const auto& layer : layers)
    if (is_skipped(options, layer)) kept.insert(layer.weight.unsafeGetTensorImpl());
  for (const auto& layer : layers) {
    if (is_skipped(options, layer) || kept.contains(layer.weight.unsafeGetTensorImpl())) continue;
    require_free(layer);
    kept.insert(layer.weight.unsafeGetTensorImpl());
    chosen.push_back(layer);
  }
  if (chosen.empty())
    throw UsageError({.what = "quantise(): the model has no linear layer that can be packed",
                      .why = "layers of torch::nn::Linear and modules that derive from HasTransposedWeight are",
                      .hint = "look at QuantiseOptions::skip"});
  QuantiseReport report;
  for (const auto& layer : chosen) pack_layer(layer, options, report);
  return report;
}

}  // namespace hortator
