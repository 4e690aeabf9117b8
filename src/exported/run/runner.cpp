#include "exported/run/runner.hpp"

#include <c10/util/Exception.h>

#include <map>
#include <string_view>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"

namespace hortator::exported {
namespace {

std::unique_ptr<Step> step_of(const Node& node, Slots& slots) {
  if (auto step = number_step(node, slots)) return step;
  if (auto step = nested_step(node, slots)) return step;
  if (auto step = operator_step(node, slots)) return step;
  if (node.target.starts_with("torch.ops.higher_order.")) {
    throw ExportFault("this higher-order operator is not supported",
                      "supported are cond, wrap_with_autocast and wrap_with_set_grad_enabled");
  }
  if (node.target.starts_with("torch._functorch.")) {
    throw ExportFault("torch.vmap and torch.func are not supported where they are called",
                      "write the file after run_decompositions({}), which replaces them by operators");
  }
  throw ExportFault("this operator is not known to LibTorch",
                    "load the library that registers it (dlopen) before the model, or export the model without it");
}

}  // namespace

GraphRunner::GraphRunner(const Graph& graph) {
  for (const auto& input : graph.inputs) {
    const auto* reference = std::get_if<Reference>(&input.content);
    inputs_.push_back(reference != nullptr ? std::optional(slots_.add(reference->name)) : std::nullopt);
  }
  for (const auto& node : graph.nodes) add_node(node);
  for (const auto& output : graph.outputs) outputs_.push_back(BoundValue::bind(output, slots_));
  plan_releases(graph);
}

void GraphRunner::add_node(const Node& node) {
  auto description = node.to_string();
  try {
    nodes_.push_back({.step = step_of(node, slots_), .released = {}, .description = std::move(description)});
  } catch (const ExportFault& fault) {
    if (std::string_view(fault.what()).starts_with("node ")) throw;  // of a graph within this node
    throw ExportFault(text::concat(node.to_string(), ": ", fault.what()), fault.hint());
  }
}

void GraphRunner::plan_releases(const Graph& graph) {
  std::map<std::size_t, std::size_t> last_use;
  const auto use_in = [&](std::size_t node) {
    return [&, node](const std::string& name) { last_use[slots_.find(name)] = node; };
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const auto& output : graph.nodes[i].outputs) each_reference(output, use_in(i));
    for (const auto& input : graph.nodes[i].inputs) each_reference(input.value, use_in(i));
  }
  for (const auto& output : graph.outputs)
    each_reference(output, [&](const auto& name) { last_use.erase(slots_.find(name)); });
  for (const auto& [slot, node] : last_use) nodes_[node].released.push_back(slot);
}

void GraphRunner::run_node(const PreparedNode& node, Frame& frame) {
  try {
    node.step->run(frame);
  } catch (c10::Error& error) {
    error.add_context("In " + node.description + " of the exported model");
    throw;
  } catch (const ExportFault& fault) {
    if (std::string_view(fault.what()).starts_with("node ")) throw;
    throw ExportFault(text::concat(node.description, ": ", fault.what()), fault.hint());
  }
  for (const auto slot : node.released) frame.slots[slot] = {};
}

std::vector<c10::IValue> GraphRunner::run(std::vector<c10::IValue> inputs, c10::Device device) const {
  Frame frame{.slots = std::vector<c10::IValue>(slots_.size()), .stack = {}, .device = device};
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i]) frame.slots[*inputs_[i]] = std::move(inputs[i]);
  }
  inputs.clear();
  for (const auto& node : nodes_) run_node(node, frame);
  std::vector<c10::IValue> outputs;
  outputs.reserve(outputs_.size());
  for (const auto& output : outputs_) outputs.push_back(output.get(frame));
  return outputs;
}

}  // namespace hortator::exported
