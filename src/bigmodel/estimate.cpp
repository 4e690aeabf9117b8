#include "bigmodel/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "bigmodel/module_sizes.hpp"
#include "bigmodel/parts.hpp"
#include "core/text/text.hpp"

namespace hortator::bigmodel {
namespace {

constexpr Bytes float32_bits = 32;

template <typename See>
void each_counted_tensor(const ModuleTree& tree, const TreeNode& node, const std::string& path, const See& see) {
  for (const auto* tensors : {&node.parameters, &node.buffers}) {
    for (const auto& tensor : *tensors) {
      if (!tree.ties.contains(joined(path, tensor.name))) see(tensor.spec);
    }
  }
  for (const auto& child : node.children) each_counted_tensor(tree, child, joined(path, child.name), see);
}

// All floating-point tensors as float32, so that a row's type says what each element takes.
ModuleTree in_float32(ModuleTree tree) {
  const auto convert = [](TreeNode& node, const auto& self) -> void {
    for (auto* tensors : {&node.parameters, &node.buffers}) {
      for (auto& tensor : *tensors) {
        if (!at::isIntegralType(tensor.spec.type, /*includeBool=*/true)) tensor.spec.type = at::kFloat;
      }
    }
    for (auto& child : node.children) self(child, self);
  };
  convert(tree.root, convert);
  return tree;
}

// A matrix is multiplied by what a token has become, and backward needs both that and the product.
Bytes activation_bytes(const ModuleTree& tree, const EstimateOptions& options) {
  Bytes numbers = 0;
  each_counted_tensor(tree, tree.root, "", [&](const formats::TensorSpec& spec) {
    if (spec.shape.size() == 2) numbers += static_cast<Bytes>(spec.shape[0] + spec.shape[1]);
  });
  const auto tokens = static_cast<Bytes>(options.batch_size) * static_cast<Bytes>(options.sequence_length);
  return numbers * tokens * estimate_type(options.training_type).bits / 8;
}

// ZeRO spreads more with each stage: the optimizer's state, the gradients, the parameters. Of these two layers are
// there at any time, the present one and the next.
Spread spread(const TrainingBytes& whole, Bytes largest_layer, const Estimate& estimate, Spread way) {
  const auto ranks = static_cast<Bytes>(estimate.ranks);
  const auto part = [&](Bytes bytes, int from_stage) { return way.zero_stage >= from_stage ? bytes / ranks : bytes; };
  const auto parameters = part(whole.model, 3), optimizer = part(whole.optimizer, 1);
  const auto layers = way.zero_stage >= 3 ? std::min(2 * largest_layer, whole.model) : 0;
  way.device = part(whole.gradients, 2) + layers + estimate.activations;
  (way.offload_optimizer ? way.host : way.device) += optimizer;
  (way.offload_parameters ? way.host : way.device) += parameters;
  return way;
}

std::vector<Spread> ways() {
  return {{.zero_stage = 0},
          {.zero_stage = 1},
          {.zero_stage = 2},
          {.zero_stage = 3},
          {.zero_stage = 2, .offload_optimizer = true},
          {.zero_stage = 3, .offload_optimizer = true},
          {.zero_stage = 3, .offload_optimizer = true, .offload_parameters = true}};
}

void validate(const EstimateOptions& options) {
  const auto refuse = [](const std::string& what) { throw UsageError({.what = what}); };
  if (options.ranks < 1) refuse(text::concat(options.ranks, " ranks train nothing"));
  if (options.batch_size < 0 || options.sequence_length < 1)
    refuse("a batch has no less than 0 samples, and a sample no less than 1 token");
  if (!estimate_type(options.training_type).trains) refuse(text::concat("nobody trains in ", options.training_type));
}

}  // namespace

const std::vector<EstimateType>& estimate_types() {
  static const std::vector<EstimateType> types = {{.name = "float32", .bits = 32, .trains = true},
                                                  {.name = "float16", .bits = 16, .is_mixed = true, .trains = true},
                                                  {.name = "bfloat16", .bits = 16, .is_mixed = true, .trains = true},
                                                  {.name = "fp8", .bits = 8, .is_mixed = true, .trains = true},
                                                  {.name = "int8", .bits = 8},
                                                  {.name = "int4", .bits = 4}};
  return types;
}

const EstimateType& estimate_type(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& type : estimate_types()) {
    if (type.name == name) return type;
    known.emplace_back(type.name);
  }
  throw UsageError({.what = text::concat("there is no type ", text::quote(name), " to estimate a model in"),
                    .hint = text::suggestion(name, known)});
}

std::optional<TrainingBytes> training_bytes(Bytes model, const EstimateType& type) {
  if (!type.trains) return {};
  if (!type.is_mixed)
    return TrainingBytes{.model = model, .gradients = model, .optimizer = 2 * model, .step = 4 * model};
  return TrainingBytes{
      .model = model, .gradients = model + std::floor(model / 2), .optimizer = 2 * model, .step = 2 * model};
}

Estimate estimate(const ModuleTree& tree, const EstimateOptions& options) {
  validate(options);
  const auto uniform = in_float32(tree);
  const ModuleSizes sizes(uniform, {});
  const WholeClasses whole(options.no_split_module_classes);
  const auto largest = largest_layer(parts_of(uniform.root, ""), sizes, whole);

  Estimate result{.stored = ModuleSizes(tree, {}).total(),
                  .in_float32 = sizes.total(),
                  .largest_layers = largest.names,
                  .training_type = options.training_type,
                  .ranks = options.ranks,
                  .activations = activation_bytes(tree, options)};
  each_counted_tensor(tree, tree.root, "", [&](const auto& spec) { result.parameters += spec.elements(); });
  for (const auto& name : options.types) {
    const auto& type = estimate_type(name);
    const auto scale = type.bits / float32_bits;
    result.rows.push_back({.type = type.name,
                           .largest_layer = largest.bytes * scale,
                           .total = sizes.total() * scale,
                           .training = training_bytes(sizes.total(), type)});
  }
  const auto training = *training_bytes(sizes.total(), estimate_type(options.training_type));
  for (const auto& way : ways()) result.spreads.push_back(spread(training, largest.bytes, result, way));
  return result;
}

ModuleTree tree_of_names(const std::vector<std::pair<std::string, formats::TensorSpec>>& tensors) {
  ModuleTree tree;
  for (const auto& [name, spec] : tensors) {
    auto* node = &tree.root;
    std::size_t begin = 0;
    for (auto dot = name.find('.'); dot != std::string::npos; begin = dot + 1, dot = name.find('.', begin)) {
      const auto child_name = name.substr(begin, dot - begin);
      auto& children = node->children;
      auto child = std::find_if(children.begin(), children.end(), [&](const auto& c) { return c.name == child_name; });
      if (child == children.end()) child = children.insert(children.end(), TreeNode{.name = child_name});
      node = &*child;
    }
    node->parameters.push_back({.name = name.substr(begin), .spec = spec});
  }
  return tree;
}

}  // namespace hortator::bigmodel
