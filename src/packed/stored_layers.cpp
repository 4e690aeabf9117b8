#include "packed/stored_layers.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstring>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "adapters/layers.hpp"
#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "packed/gguf_layers.hpp"
#include "packed/stored_weights.hpp"
#include "weights/module_weights.hpp"

namespace hortator::packed {
namespace {

std::string type_name(at::ScalarType type) {
  return type == at::kHalf ? "float16" : type == at::kBFloat16 ? "bfloat16" : "float32";
}

at::Tensor bytes_of_text(const std::string& text) {
  auto bytes = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

/// The formats of a model's packed weights, and whether an embedding looks up rows of one that has it.
std::map<WeightFormat, bool> formats_of(const torch::nn::Module& module) {
  std::map<WeightFormat, bool> formats;
  for (const auto& layer : adapters::layers_of(module).layers)
    if (const auto packed = packed_layer_of(layer.weight))
      formats[packed->layout.format] |= layer.kind == adapters::LayerKind::embedding;
  return formats;
}

/// transformers' bitsandbytes models have one format, and no packed embeddings.
bool can_bitsandbytes_read(const std::map<WeightFormat, bool>& formats) {
  if (formats.size() != 1) return false;
  const auto& [format, is_looked_up] = *formats.begin();
  return !is_looked_up && format_of(format).stored().is_of_bitsandbytes;
}

at::Tensor state_of(const PackableLayer& layer) {
  const auto& layout = layer.layout;
  const nlohmann::ordered_json state = {{"quant_type", layout.numbers().name()},
                                        {"blocksize", layout.group},
                                        {"dtype", type_name(layer.type)},
                                        {"shape", {layout.outputs, layout.inputs}}};
  return bytes_of_text(state.dump());
}

/// Whether a file stores the weight of this layer under this name.
std::optional<PackableLayer> layer_named(const std::vector<adapters::Layer>& layers, const std::string& name,
                                         const StoredLayer& stored) {
  for (const auto& layer : layers) {
    if (layer.name + ".weight" != name || layer.kind == adapters::LayerKind::convolution) continue;
    return PackableLayer{.name = layer.name,
                         .weight = layer.weight,
                         .layout = stored.layout,
                         .is_transposed = layer.kind == adapters::LayerKind::transposed,
                         .type = stored.type};
  }
  return {};
}

void require_shape(const PackableLayer& layer, const weights::WeightSource& source) {
  const auto sizes = interception::sizes_of_weight(layer.weight);
  const auto& [outputs, inputs] = std::pair(layer.layout.outputs, layer.layout.inputs);
  const auto expected = layer.is_transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs};
  if (sizes == expected) return;
  throw UsageError({.what = text::concat(source.path(), " has ", text::quote(layer.weight_name()), " packed as [",
                                         text::join(expected), "], the model has [", text::join(sizes), "]"),
                    .why = "the file is of another model"});
}

std::map<std::string, StoredLayer> stored_layers_of(const weights::WeightSource& source) {
  if (const auto* stored = dynamic_cast<const StoredWeights*>(&source)) return stored->layers();
  std::map<std::string, StoredLayer> layers;
  if (const auto* gguf = dynamic_cast<const GgufLayers*>(&source))
    for (const auto& [name, layout] : gguf->layers()) layers.emplace(name, StoredLayer{.layout = layout});
  return layers;
}

}  // namespace

std::map<std::string, at::Tensor> stored_tensors(const std::string& name, const at::Tensor& weight) {
  const auto layer = packed_layer_of(weight);
  if (!layer) return {};
  const auto& layout = layer->layout;
  const auto flat = weight.detach().reshape({-1});
  const auto scales = flat.narrow(0, 0, layout.scale_bytes());
  const auto numbers = flat.narrow(0, layout.scale_bytes(), layout.number_bytes());
  const auto stored = layout.numbers().stored();
  if (stored.state == nullptr) {
    const auto beginning = name.substr(0, name.size() - std::string_view("weight").size());
    return {{name, numbers.view(at::kChar).view({layout.outputs, layout.inputs})},
            {beginning + "SCB", scales.clone().view(at::kFloat)},
            {beginning + "weight_format", at::zeros({}, at::kByte)}};
  }
  std::map<std::string, at::Tensor> tensors = {{name, numbers.view({-1, 1})},
                                               {name + ".absmax", scales.clone().view(stored.scale_type)},
                                               {name + stored.state, state_of(*layer)}};
  constexpr std::int64_t values = 16;
  if (stored.values != nullptr)
    tensors.emplace(name + ".quant_map", at::from_blob(const_cast<float*>(stored.values), {values}).clone());
  return tensors;
}

std::string quantization_config(const torch::nn::Module& module) {
  const auto formats = formats_of(module);
  if (formats.empty()) return {};
  const auto format = formats.begin()->first;
  if (!can_bitsandbytes_read(formats)) {
    std::vector<std::string> names;
    for (const auto& [one, is_looked_up] : formats) names.emplace_back(format_of(one).name());
    return nlohmann::json({{"quant_method", "hortator"}, {"format", text::join(names)}}).dump();
  }
  nlohmann::ordered_json config = {{"quant_method", "bitsandbytes"}, {"load_in_8bit", false}, {"load_in_4bit", false}};
  config[format_of(format).stored().bitsandbytes] = true;
  auto kept = nlohmann::ordered_json::array();
  for (const auto& layer : adapters::layers_of(module).layers)
    if (layer.kind != adapters::LayerKind::embedding && !interception::is_packed(layer.weight))
      kept.push_back(layer.name);
  config["llm_int8_skip_modules"] = kept;
  if (!format_of(format).has_bytes())
    config.update({{"bnb_4bit_quant_type", format_of(format).name()},
                   {"bnb_4bit_use_double_quant", false},
                   {"bnb_4bit_compute_dtype", "float32"},
                   {"bnb_4bit_quant_storage", "uint8"}});
  return config.dump();
}

std::unique_ptr<weights::WeightSource> with_packed_layers(std::unique_ptr<weights::WeightSource> source) {
  const auto is_beside = [](const std::string& name) {
    return name.find(".quant_state.") != std::string::npos || name.ends_with(".SCB");
  };
  if (std::ranges::none_of(source->names(), is_beside)) return source;
  return std::make_unique<StoredWeights>(std::move(source));
}

std::unique_ptr<weights::WeightSource> with_layers_of_file(std::unique_ptr<weights::WeightSource> source) {
  auto* gguf = dynamic_cast<weights::GgufWeights*>(source.get());
  if (gguf == nullptr) return with_packed_layers(std::move(source));
  [[maybe_unused]] const auto* same = source.release();
  return std::make_unique<GgufLayers>(std::unique_ptr<weights::GgufWeights>(gguf));
}

std::vector<PackableLayer> layers_packed_in(const weights::WeightSource& source, const torch::nn::Module& module,
                                            const Renaming& rename) {
  const auto stored = stored_layers_of(source);
  if (stored.empty()) return {};
  const auto layers = adapters::layers_of(module).layers;
  std::vector<PackableLayer> packed;
  for (const auto& [name, one] : stored) {
    auto layer = layer_named(layers, rename(name), one);
    if (!layer)
      throw UsageError({.what = text::concat("The weight ", text::quote(name), " of ", source.path(),
                                             " is packed, and the model has no linear layer of this name"),
                        .why = "only weights of linear layers and embeddings are packed",
                        .hint = "compare the model with the one that was saved"});
    require_shape(*layer, source);
    if (!one.scales.defined() && layer->weight.is_floating_point()) layer->type = layer->weight.scalar_type();
    packed.push_back(std::move(*layer));
  }
  return packed;
}

}  // namespace hortator::packed
