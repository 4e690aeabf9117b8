#include "bigmodel/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bigmodel/module_tree.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "planning/cost.hpp"

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

// As a plan costs it, from sizes in place of rehearsals. At stage 3, a rank holds two whole layers at a time, the
// current one and the next.
TrainingLayout layout_of(const TrainingBytes& whole, Bytes largest_layer, const Estimate& estimate,
                         TrainingLayout layout) {
  const planning::ModelFacts facts{.parameters = whole.model,
                                   .gradients = whole.gradients,
                                   .moments = whole.optimizer,
                                   .activations = estimate.activations,
                                   .layers_in_use = 2 * largest_layer};
  const auto cost = planning::memory_cost(facts, {.data = estimate.ranks,
                                                  .zero = layout.zero_stage,
                                                  .offload = layout.offload_optimizer,
                                                  .offload_parameters = layout.offload_parameters});
  layout.device = cost.total();
  layout.host = cost.on_host;
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

std::string size_text(Bytes bytes) { return units::bytes(static_cast<std::uint64_t>(std::ceil(bytes))); }

std::string row(const std::string& first, const std::vector<std::string>& others) {
  std::ostringstream line;
  line << "  " << std::left << std::setw(26) << first << std::right;
  for (const auto& other : others) line << std::setw(16) << other;
  line << '\n';
  return std::move(line).str();
}

std::string name_of(const TrainingLayout& layout) {
  auto name = layout.zero_stage == 0 ? std::string("no ZeRO") : text::concat("ZeRO ", layout.zero_stage);
  if (layout.offload_parameters) return name + ", all on the host";
  return layout.offload_optimizer ? name + ", Adam on the host" : name;
}

std::string shown_layers(const Estimate& estimate) {
  constexpr std::size_t max_names = 3;
  auto names = estimate.largest_layers;
  const auto more = names.size() > max_names ? names.size() - max_names : 0;
  names.resize(names.size() - more);
  return text::join(names) + (more > 0 ? text::concat(" and ", more, " more") : "");
}

}  // namespace

const std::vector<EstimateType>& estimate_types() {
  static const std::vector<EstimateType> types = {
      {.name = "float32", .bits = 32, .trains = true},
      {.name = "float16", .bits = 16, .is_mixed = true, .trains = true},
      {.name = "bfloat16", .bits = 16, .is_mixed = true, .trains = true},
      {.name = "fp8", .bits = 8, .is_mixed = true, .trains = true, .trains_here = false},
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
                           .training = type.trains_here ? training_bytes(sizes.total(), type) : std::nullopt});
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
      auto child = std::ranges::find_if(children, [&](const auto& c) { return c.name == child_name; });
      if (child == children.end()) child = children.insert(children.end(), TreeNode{.name = child_name});
      node = &*child;
    }
    node->parameters.push_back({.name = name.substr(begin), .spec = spec});
  }
  return tree;
}

std::string table(const Estimate& estimate, const std::string& source) {
  std::ostringstream out;
  out << source << ": " << estimate.parameters << " numbers in " << size_text(estimate.stored)
      << "; the largest layer is " << shown_layers(estimate) << "\n\n";
  out << row("held in", {"largest layer", "total", "to train (Adam)"});
  for (const auto& held : estimate.rows) {
    out << row(std::string(held.type), {size_text(held.largest_layer), size_text(held.total),
                                        held.training ? size_text(held.training->held()) : std::string("-")});
  }
  out << "\ntraining in " << estimate.training_type << " on " << text::count(estimate.ranks, "rank")
      << ", memory of each rank"
      << (estimate.activations > 0 ? " (with about " + size_text(estimate.activations) + " of activations)" : "")
      << ":\n\n"
      << row("", {"device", "host"});
  for (const auto& layout : estimate.layouts)
    out << row(name_of(layout), {size_text(layout.device), size_text(layout.host)});
  return std::move(out).str();
}

std::string to_json(const Estimate& estimate, const std::string& source) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), layouts = Json::array();
  for (const auto& held : estimate.rows) {
    Json line = {{"dtype", held.type}, {"largest_layer", held.largest_layer}, {"total", held.total}};
    if (held.training) {
      line["training"] = {{"model", held.training->model},
                          {"gradients", held.training->gradients},
                          {"optimizer", held.training->optimizer},
                          {"step", held.training->step},
                          {"held", held.training->held()}};
    }
    rows.push_back(std::move(line));
  }
  for (const auto& layout : estimate.layouts) {
    layouts.push_back({{"zero_stage", layout.zero_stage},
                       {"offload_optimizer", layout.offload_optimizer},
                       {"offload_parameters", layout.offload_parameters},
                       {"device", layout.device},
                       {"host", layout.host}});
  }
  const Json all = {{"source", source},
                    {"parameters", estimate.parameters},
                    {"stored", estimate.stored},
                    {"float32", estimate.in_float32},
                    {"largest_layers", estimate.largest_layers},
                    {"rows", rows},
                    {"training_dtype", estimate.training_type},
                    {"ranks", estimate.ranks},
                    {"activations", estimate.activations},
                    {"spreads", layouts}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hortator::bigmodel
