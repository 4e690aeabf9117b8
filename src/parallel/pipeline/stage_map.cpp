#include "parallel/pipeline/stage_map.hpp"

#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "core/text/text.hpp"
#include "parallel/pipeline/layer_units.hpp"
#include "parallel/pipeline/stage_cut.hpp"

namespace hortator::parallel {
namespace {

/// The layers of a module, which may belong to a module within it.
struct NamedLayers {
  std::vector<std::string> names = {};
  std::set<const void*> used_after = {};  ///< TensorImpls of parameters that are also read after them
};

NamedLayers layers_of(const torch::nn::Module& module, int stages) {
  NamedLayers found;
  const auto take = [&](const torch::nn::Module& owner, const std::string& prefix) {
    const auto* one = dynamic_cast<const HasPipelineLayers*>(&owner);
    if (one == nullptr) return;
    for (const auto& tensor : one->used_after_layers()) found.used_after.insert(tensor.unsafeGetTensorImpl());
    if (!found.names.empty()) return;
    for (const auto& name : one->pipeline_layers()) found.names.push_back(prefix + name);
  };
  take(module, "");
  for (const auto& item : module.named_modules("", /*include_self=*/false)) take(*item.value(), item.key() + ".");
  if (found.names.empty()) found.names = layer_units(module, stages);
  return found;
}

/// Where a parameter or buffer lies: within a layer, before the layers or after them.
class Places {
 public:
  static constexpr std::int64_t before = -1, after = std::numeric_limits<std::int64_t>::max();

  Places(const torch::nn::Module& module, const std::vector<std::string>& layers) : layers_(layers) {
    std::int64_t number = 0;
    for (const auto& item : module.named_modules("", /*include_self=*/false)) {
      order_.emplace(item.key(), number++);
      if (!first_ && layer_of(item.key()) != none) first_ = order_.at(item.key());
    }
    for (const auto& layer : layers) require(layer);
  }

  std::int64_t of(const std::string& name) const {
    if (const auto layer = layer_of(name); layer != none) return layer;
    const auto dot = name.rfind('.');
    const auto owner = dot == std::string::npos ? order_.end() : order_.find(name.substr(0, dot));
    return owner == order_.end() || owner->second < first_.value_or(0) ? before : after;
  }

 private:
  static constexpr std::int64_t none = -2;

  void require(const std::string& layer) const {
    const auto is_it = [&](const auto& item) {
      return item.first == layer || (item.first.starts_with(layer) && item.first[layer.size()] == '.');
    };
    if (std::ranges::any_of(order_, is_it)) return;
    throw UsageError(
        {.what = text::concat("pipeline_layers() names ", text::quote(layer), ", which is not a layer of the model"),
         .why = "stages are cut by these names",
         .hint = "name modules that are registered within it"});
  }
  std::int64_t layer_of(const std::string& name) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto& layer = layers_[i];
      if (name.starts_with(layer) && (name.size() == layer.size() || name[layer.size()] == '.'))
        return static_cast<std::int64_t>(i);
    }
    return none;
  }

  const std::vector<std::string>& layers_;
  std::map<std::string, std::int64_t> order_;
  std::optional<std::int64_t> first_;  ///< the first module of a layer
};

/// The weights of embeddings, by TensorImpl.
std::set<const void*> tables_of(const torch::nn::Module& module) {
  std::set<const void*> tables;
  for (const auto& part : module.modules(/*include_self=*/false)) {
    if (const auto* table = dynamic_cast<const torch::nn::EmbeddingImpl*>(part.get()))
      tables.insert(table->weight.unsafeGetTensorImpl());
  }
  return tables;
}

/// What it costs to multiply by a parameter: vectors are cheap, and tables are looked up in, also those before the
/// layers.
double cost_of(const at::Tensor& parameter, std::int64_t place, bool is_table) {
  const auto min_dims = place == Places::before ? 3 : 2;
  return parameter.dim() >= min_dims && !is_table ? static_cast<double>(parameter.numel()) : 0;
}

LayerCosts costs_of(const torch::nn::Module& module, const NamedLayers& layers, const Places& places) {
  LayerCosts costs{.layers =
                       std::vector<double>(layers.names.size(), 1)};  // layers without matrices are spread as well
  std::set<const void*> seen;
  const auto tables = tables_of(module);
  for (const auto& item : module.named_parameters()) {
    const bool is_table = tables.contains(item.value().unsafeGetTensorImpl());
    if (!seen.insert(item.value().unsafeGetTensorImpl()).second) continue;
    const auto place = places.of(item.key());
    const auto cost = cost_of(item.value(), place, is_table);
    if (place == Places::before) {
      costs.before += cost;
    } else if (place == Places::after) {
      costs.after += cost;
    } else {
      costs.layers[static_cast<std::size_t>(place)] += cost;
    }
    if (layers.used_after.contains(item.value().unsafeGetTensorImpl()))
      costs.after += cost_of(item.value(), Places::after, /*is_table=*/false);
  }
  return costs;
}

}  // namespace

bool names_layers(const torch::nn::Module& module) {
  const auto names = [](const torch::nn::Module& one) {
    const auto* layers = dynamic_cast<const HasPipelineLayers*>(&one);
    return layers != nullptr && !layers->pipeline_layers().empty();
  };
  return names(module) ||
         std::ranges::any_of(module.modules(/*include_self=*/false), [&](const auto& part) { return names(*part); });
}

StageMap map_stages(const torch::nn::Module& module, const PipelineShape& shape) {
  const auto layers = layers_of(module, shape.stages());
  const Places places(module, layers.names);
  StageMap map{.layers = static_cast<std::int64_t>(layers.names.size()),
               .of_stages = cut_layers(costs_of(module, layers, places), shape.stages()),
               .is_plain = !names_layers(module)};
  const int last = shape.stages() - 1;
  const auto stage_of = [&](std::int64_t place) {
    if (place == Places::before) return 0;
    if (place == Places::after) return last;
    const auto holds = [&](const core::Range& range) { return place < range.end; };
    return static_cast<int>(std::ranges::find_if(map.of_stages, holds) - map.of_stages.begin());
  };
  std::map<const void*, std::set<int>> ranks;  // tied parameters have several names
  const auto note = [&](const std::string& name, const at::Tensor& tensor) {
    auto& of_tensor = ranks[tensor.unsafeGetTensorImpl()];
    of_tensor.insert(shape.rank_of(stage_of(places.of(name))));
    if (layers.used_after.contains(tensor.unsafeGetTensorImpl())) of_tensor.insert(shape.rank_of(last));
  };
  const auto all = [&](const auto& visit) {
    for (const auto& item : module.named_parameters()) visit(item.key(), item.value());
    for (const auto& item : module.named_buffers()) {
      if (item.value().defined()) visit(item.key(), item.value());
    }
  };
  all(note);
  all([&](const std::string& name, const at::Tensor& tensor) {
    const auto& of_tensor = ranks.at(tensor.unsafeGetTensorImpl());
    map.ranks_of.emplace(name, std::vector<int>(of_tensor.begin(), of_tensor.end()));
    auto& stages = map.stages_of[name] = {stage_of(places.of(name))};
    if (layers.used_after.contains(tensor.unsafeGetTensorImpl())) stages.push_back(last);
  });
  return map;
}

}  // namespace hortator::parallel
