#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <functional>
#include <map>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/run/branch_gradients.hpp"
#include "exported/run/results.hpp"
#include "exported/run/runner.hpp"
#include "exported/run/step.hpp"

namespace hortator::exported {
namespace {

template <typename Content>
const Content& given(const Node& node, std::size_t index, const char* what) {
  if (index < node.inputs.size()) {
    if (const auto* content = std::get_if<Content>(&node.inputs[index].value.content)) return *content;
  }
  throw ExportFault(text::concat("argument ", index + 1, " is not ", what));
}

const Graph& given_graph(const Node& node, std::size_t index) {
  return *given<std::shared_ptr<const Graph>>(node, index, "a graph");
}

/// A graph within a node, its arguments and the node's results.
class NestedGraph {
 public:
  NestedGraph(const Graph& graph, const Argument::List& arguments, const Slots& slots) : runner_(graph) {
    for (const auto& argument : arguments) arguments_.push_back(BoundValue::bind(argument, slots));
    if (arguments_.size() != runner_.inputs())
      throw ExportFault(text::concat("its graph takes ", runner_.inputs(), " values, and gets ", arguments_.size()));
  }

  std::size_t outputs() const { return runner_.outputs(); }
  std::vector<c10::IValue> inputs(const Frame& frame) const {
    std::vector<c10::IValue> inputs;
    inputs.reserve(arguments_.size());
    for (const auto& argument : arguments_) inputs.push_back(argument.get(frame));
    return inputs;
  }
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs, c10::Device device) const {
    return runner_.run(std::move(inputs), device);
  }
  std::vector<c10::IValue> run(const Frame& frame) const { return run(inputs(frame), frame.device); }

 private:
  GraphRunner runner_;
  std::vector<BoundValue> arguments_;
};

Argument::List arguments_from(const Node& node, std::size_t first) {
  Argument::List arguments;
  for (std::size_t i = first; i < node.inputs.size(); ++i) arguments.push_back(node.inputs[i].value);
  return arguments;
}

void require_results(const NestedGraph& graph, const Results& results) {
  if (graph.outputs() != results.size())
    throw ExportFault(text::concat("its graph has ", graph.outputs(), " results, and the node ", results.size()));
}

void store_all(std::vector<c10::IValue> values, const Results& results, Frame& frame) {
  for (std::size_t i = 0; i < results.size(); ++i) results.store(i, std::move(values[i]), frame);
}

/// torch.no_grad() and torch.enable_grad()
class GradModeStep final : public Step {
 public:
  GradModeStep(const Node& node, Slots& slots)
      : enabled_(given<bool>(node, 0, "true or false")),
        graph_(given_graph(node, 1), arguments_from(node, 2), slots),
        results_(node.outputs, slots) {
    require_results(graph_, results_);
  }

  void run(Frame& frame) const override {
    const c10::AutoGradMode mode(enabled_);
    store_all(graph_.run(frame), results_, frame);
  }

 private:
  bool enabled_;
  NestedGraph graph_;
  Results results_;
};

/// The state of autocast for one type of device; restored by the destructor.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, c10::ScalarType type, bool enabled, bool caches)
      : device_(device),
        type_(at::autocast::get_autocast_dtype(device)),
        enabled_(at::autocast::is_autocast_enabled(device)),
        caches_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::increment_nesting();
    set(type, enabled, caches);
  }
  ~AutocastScope() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set(type_, enabled_, caches_);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  void set(c10::ScalarType type, bool enabled, bool caches) const {
    at::autocast::set_autocast_dtype(device_, type);
    at::autocast::set_autocast_enabled(device_, enabled);
    at::autocast::set_autocast_cache_enabled(caches);
  }

  c10::DeviceType device_;
  c10::ScalarType type_;
  bool enabled_, caches_;
};

/// torch.autocast(), for the type of device on which the model runs.
class AutocastStep final : public Step {
 public:
  AutocastStep(const Node& node, Slots& slots)
      : enabled_(given<bool>(node, 2, "true or false")),
        caches_(node.inputs[3].value.is_none() || given<bool>(node, 3, "true or false")),
        graph_(given_graph(node, 4), arguments_from(node, 5), slots),
        results_(node.outputs, slots) {
    if (!node.inputs[1].value.is_none()) type_ = given<c10::ScalarType>(node, 1, "a type of elements");
    require_results(graph_, results_);
  }

  void run(Frame& frame) const override {
    const auto device = frame.device.type();
    const AutocastScope scope(device, type_.value_or(at::autocast::get_autocast_dtype(device)), enabled_, caches_);
    store_all(graph_.run(frame), results_, frame);
  }

 private:
  bool enabled_, caches_;
  std::optional<c10::ScalarType> type_;
  NestedGraph graph_;
  Results results_;
};

/// torch.cond()
class ConditionStep final : public Step {
 public:
  ConditionStep(const Node& node, Slots& slots)
      : condition_(BoundValue::bind(node.inputs.at(0).value, slots)),
        if_true_(given_graph(node, 1), given<Argument::List>(node, 3, "a list"), slots),
        if_false_(given_graph(node, 2), given<Argument::List>(node, 3, "a list"), slots),
        unused_if_true_(unused_inputs(given_graph(node, 1))),
        unused_if_false_(unused_inputs(given_graph(node, 2))),
        results_(node.outputs, slots) {
    require_results(if_true_, results_);
    require_results(if_false_, results_);
  }

  void run(Frame& frame) const override {
    const auto condition = condition_.get(frame);
    const bool is_true = condition.isTensor() ? condition.toTensor().is_nonzero() : condition.toBool();
    const auto operands = if_true_.inputs(frame);
    auto results = (is_true ? if_true_ : if_false_).run(operands, frame.device);
    join_gradients(results, operands, is_true ? unused_if_true_ : unused_if_false_);
    store_all(std::move(results), results_, frame);
  }

 private:
  BoundValue condition_;
  NestedGraph if_true_, if_false_;
  std::vector<bool> unused_if_true_, unused_if_false_;
  Results results_;
};

template <typename S>
std::unique_ptr<Step> made(const Node& node, Slots& slots) {
  return std::make_unique<S>(node, slots);
}

struct NestedOperator {
  std::size_t min_arguments;
  std::unique_ptr<Step> (*make)(const Node& node, Slots& slots);
};

const std::map<std::string, NestedOperator, std::less<>> nested_operators = {
    {"torch.ops.higher_order.wrap_with_set_grad_enabled", {2, made<GradModeStep>}},
    {"torch.ops.higher_order.wrap_with_autocast", {5, made<AutocastStep>}},
    {"torch.ops.higher_order.cond", {4, made<ConditionStep>}}};

}  // namespace

std::unique_ptr<Step> nested_step(const Node& node, Slots& slots) {
  const auto found = nested_operators.find(node.target);
  if (found == nested_operators.end()) return nullptr;
  if (node.inputs.size() < found->second.min_arguments) throw ExportFault("arguments are missing");
  return found->second.make(node, slots);
}

}  // namespace hortator::exported
