#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/training/recompute.hpp>
#include <hortator/training/recompute_layers.hpp>
#include <string_view>
#include <utility>

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

bool fits_pattern(std::string_view name, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  name.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (fits_pattern(name.substr(skipped), pattern)) return true;
  }
  return false;
}

bool matches(const std::string& name, const torch::nn::Module& layer, const RecomputeLayersOptions& options) {
  const auto class_name = short_name(layer.name());
  return std::ranges::any_of(options.classes, [&](const auto& asked) { return short_name(asked) == class_name; }) ||
         std::ranges::any_of(options.names, [&](const auto& pattern) { return fits_pattern(name, pattern); });
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

}  // namespace

std::int64_t recompute_layers(torch::nn::Module& module, const RecomputeLayersOptions& options) {
  std::int64_t changed = 0;
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    if (auto* container = dynamic_cast<torch::nn::SequentialImpl*>(&part)) changed += change(*container, path, options);
  });
  if (changed > 0) return changed;
  throw UsageError(
      {.what = text::concat("recompute_layers: no layer of a Sequential matches ",
                            text::quote(text::join(options.classes)), " or ", text::quote(text::join(options.names))),
       .why = "layers that other modules call cannot be reached from outside",
       .hint = "name a class or a layer of a torch::nn::Sequential, or use recompute() in forward"});
}

}  // namespace hortator::detail
