#include "bigmodel/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>

#include "bigmodel/module_sizes.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "core/text/text.hpp"

namespace hortator::bigmodel {
namespace {

constexpr Bytes float32_bits = 32;

template <typename Visit>
void each_counted_tensor(const ModuleTree& tree, const TreeNode& node, const std::string& path, const Visit& visit) {
  for (const auto* tensors : {&node.parameters, &node.buffers}) {
    for (const auto& tensor : *tensors) {
      if (!tree.ties.contains(joined(path, tensor.name))) visit(tensor.spec);
    }
  }
  for (const auto& child : node.children) each_counted_tensor(tree, child, joined(path, child.name), visit);
}

// Makes all floating-point tensors float32, so that a row's size scales with its type.
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

// Each matrix multiplies a token's vector; backward needs both the input and the product.
Bytes activation_bytes(const ModuleTree& tree, const EstimateOptions& options) {
  Bytes numbers = 0;
  each_counted_tensor(tree, tree.root, "", [&](const formats::TensorSpec& spec) {
    if (spec.shape.size() == 2) numbers += static_cast<Bytes>(spec.shape[0] + spec.shape[1]);
  });
  const auto tokens = static_cast<Bytes>(options.batch_size) * static_cast<Bytes>(options.sequence_length);
  return numbers * tokens * estimate_type(options.training_type).bits / 8;
}

// Each ZeRO stage shards more: optimizer state, gradients, parameters. At stage 3, a rank holds two whole layers at a
// time, the current one and the next.
TrainingLayout layout_of(const TrainingBytes& whole, Bytes largest_layer, const Estimate& estimate,
                         TrainingLayout layout) {
  const auto ranks = static_cast<Bytes>(estimate.ranks);
  const auto share = [&](Bytes bytes, int from_stage) {
    return layout.zero_stage >= from_stage ? bytes / ranks : bytes;
  };
  const auto parameters = share(whole.model, 3), optimizer = share(whole.optimizer, 1);
  const auto layers = layout.zero_stage >= 3 ? std::min(2 * largest_layer, whole.model) : 0;
  layout.device = share(whole.gradients, 2) + layers + estimate.activations;
  (layout.offload_optimizer ? layout.host : layout.device) += optimizer;
  (layout.offload_parameters ? layout.host : layout.device) += parameters;
  return layout;
}

std::vector<TrainingLayout> training_layouts() {
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
  if (options.ranks < 1) refuse(text::concat("The number of ranks must be at least 1, got ", options.ranks));
  if (options.batch_size < 0 || options.sequence_length < 1)
    refuse("The batch size must be at least 0 samples, and the sequence length at least 1 token");
  if (!estimate_type(options.training_type).trains)
    refuse(text::concat("Models cannot be trained in ", options.training_type));
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
  throw UsageError({.what = text::concat("Unknown type ", text::quote(name), " for a memory estimate"),
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
  const NoSplitClasses whole(options.no_split_module_classes);
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
  for (const auto& layout : training_layouts())
    result.layouts.push_back(layout_of(training, largest.bytes, result, layout));
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
