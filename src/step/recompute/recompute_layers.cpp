#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/recomputable_layers.hpp>
#include <hortator/training/recompute.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <string_view>
#include <utility>

#include "core/text/pattern.hpp"
#include "core/text/text.hpp"

namespace hortator::detail {
namespace {

/// A layer as a module of one tensor, whose buffers are the layer's.
struct OneTensorLayer : torch::nn::Module {
  explicit OneTensorLayer(torch::nn::AnyModule layer) : layer_(std::move(layer)) {
    register_module("layer", layer_.ptr());
  }
  at::Tensor forward(at::Tensor input) { return layer_.forward(std::move(input)); }

 private:
  torch::nn::AnyModule layer_;
};

/// What a Sequential calls in the place of a layer. The layer stays the Sequential's registered child.
class RecomputedLayer : public torch::nn::Module {
 public:
  explicit RecomputedLayer(torch::nn::AnyModule layer) : layer_(std::make_shared<OneTensorLayer>(std::move(layer))) {}
  at::Tensor forward(at::Tensor input) { return recompute(layer_, std::move(input)); }
  std::shared_ptr<torch::nn::Module> clone(const std::optional<c10::Device>& /*device*/) const override {
    throw UsageError({.what = "A model whose layers are recomputed cannot be cloned",
                      .why = "the clone's layers would have other names",
                      .hint = "clone the model before recompute_layers()"});
  }

 private:
  std::shared_ptr<OneTensorLayer> layer_;
};

std::string_view short_name(std::string_view name) {
  if (const auto colon = name.rfind("::"); colon != std::string_view::npos) name.remove_prefix(colon + 2);
  if (name.ends_with("Impl")) name.remove_suffix(4);
  return name;
}

bool has_class(std::string_view class_name, const RecomputeLayersOptions& options) {
  return std::ranges::any_of(options.classes, [&](const auto& asked) { return short_name(asked) == class_name; });
}

bool has_name(const std::string& name, const RecomputeLayersOptions& options) {
  return std::ranges::any_of(options.names, [&](const auto& pattern) { return text::fits_pattern(name, pattern); });
}

bool matches(const std::string& name, const torch::nn::Module& layer, const RecomputeLayersOptions& options) {
  return has_class(short_name(layer.name()), options) || has_name(name, options);
}

std::int64_t change(torch::nn::SequentialImpl& container, const std::string& path,
                    const RecomputeLayersOptions& options) {
  std::int64_t changed = 0;
  const auto names = container.named_children().keys();
  std::size_t i = 0;
  for (auto& layer : container) {
    const auto name = path.empty() ? names[i] : text::concat(path, ".", names[i]);
    ++i;
    const auto module = layer.ptr();
    if (dynamic_cast<const RecomputedLayer*>(module.get()) != nullptr || !matches(name, *module, options)) continue;
    layer = torch::nn::AnyModule(std::make_shared<RecomputedLayer>(layer));
    ++changed;
  }
  return changed;
}

/// The layers that a module recomputes in its own forward.
std::int64_t change(RecomputableLayers& owner, const std::string& path, const RecomputeLayersOptions& options) {
  const auto classes = owner.classes_of_layers();
  const auto names = classes.empty() ? std::vector<std::string>() : owner.names_of_layers();
  const bool has_this_class =
      std::ranges::any_of(classes, [&](const auto& one) { return has_class(short_name(one), options); });
  const auto matching = std::ranges::count_if(names, [&](const auto& name) {
    return has_this_class || has_name(path.empty() ? name : text::concat(path, ".", name), options);
  });
  if (matching == 0) return 0;
  if (matching < std::ssize(names)) {
    throw UsageError({.what = text::concat("recompute_layers: ", text::quote(text::join(options.names)), " matches ",
                                           matching, " of the ", names.size(), " layers ", classes.front()),
                      .why = "their model recomputes all of them or none",
                      .hint = text::concat("name the class ", text::quote(classes.front()), ", or a pattern for all")});
  }
  owner.recompute_own_layers(true);
  return matching;
}

}  // namespace

std::int64_t recompute_layers(torch::nn::Module& module, const RecomputeLayersOptions& options) {
  std::int64_t changed = 0;
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    if (auto* container = dynamic_cast<torch::nn::SequentialImpl*>(&part)) changed += change(*container, path, options);
    if (auto* owner = dynamic_cast<RecomputableLayers*>(&part)) changed += change(*owner, path, options);
  });
  if (changed > 0) return changed;
  throw UsageError(
      {.what = text::concat("recompute_layers: no layer of a Sequential matches ",
                            text::quote(text::join(options.classes)), " or ", text::quote(text::join(options.names))),
       .why = "layers that other modules call cannot be reached from outside, except where the module is a "
              "RecomputableLayers, as models of hortator::models are",
       .hint = "name a class or a layer of one of these, or use recompute() in forward"});
}

}  // namespace hortator::detail
