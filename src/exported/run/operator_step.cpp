#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/run/results.hpp"
#include "exported/run/step.hpp"

namespace hortator::exported {
namespace {

constexpr std::string_view operators = "torch.ops.";

/// "torch.ops.aten.add.Tensor" as LibTorch's "aten::add.Tensor".
std::optional<c10::OperatorHandle> find_operator(std::string_view target) {
  if (!target.starts_with(operators)) return {};
  target.remove_prefix(operators.size());
  const auto space = target.find('.');
  const auto overload = target.rfind('.');
  if (space == std::string_view::npos || overload == space) return {};
  const auto name = text::concat(target.substr(0, space), "::", target.substr(space + 1, overload - space - 1));
  auto variant = std::string(target.substr(overload + 1));
  if (variant == "default") variant.clear();
  return c10::Dispatcher::singleton().findSchema({name, variant});
}

class OperatorStep final : public Step {
 public:
  OperatorStep(const Node& node, c10::OperatorHandle called, Slots& slots)
      : operator_(std::move(called)),
        arguments_(bound(node, operator_.schema(), slots)),
        results_(node.outputs, slots) {
    const auto returned = operator_.schema().returns().size();
    if (results_.size() != 0 && results_.size() != returned) {
      throw ExportFault(text::concat("it has ", results_.size(), " results, and the operator ", returned),
                        "this LibTorch has another version of the operator than the PyTorch that exported the model");
    }
  }

  void run(Frame& frame) const override {
    auto& stack = frame.stack;
    stack.clear();
    for (const auto& argument : arguments_) stack.push_back(argument.get(frame));
    operator_.callBoxed(stack);
    for (std::size_t i = 0; i < results_.size(); ++i) results_.store(i, std::move(stack[i]), frame);
  }

 private:
  static std::vector<BoundValue> bound(const Node& node, const c10::FunctionSchema& schema, const Slots& slots) {
    std::vector<BoundValue> values;
    std::size_t used = 0;
    for (const auto& parameter : schema.arguments()) {
      const auto given = std::ranges::find(node.inputs, parameter.name(), &NamedArgument::name);
      if (given != node.inputs.end()) {
        ++used;
        values.push_back(BoundValue::bind(given->value, parameter.type(), slots, parameter.N()));
      } else if (parameter.default_value()) {
        values.push_back(BoundValue::constant(*parameter.default_value()));
      } else {
        throw ExportFault(text::concat("the argument ", text::quote(parameter.name()), " is missing"));
      }
    }
    if (used != node.inputs.size()) {
      throw ExportFault("it has an argument that the operator does not know",
                        "this LibTorch has another version of the operator than the PyTorch that exported the model");
    }
    return values;
  }

  c10::OperatorHandle operator_;
  std::vector<BoundValue> arguments_;
  Results results_;
};

/// A check of what the exporter assumed, which does not hold for a model that was converted or moved since.
class NoStep final : public Step {
 public:
  void run(Frame& /*frame*/) const override {}
};

}  // namespace

std::unique_ptr<Step> operator_step(const Node& node, Slots& slots) {
  if (node.target == "torch.ops.aten._assert_tensor_metadata.default") return std::make_unique<NoStep>();
  auto found = find_operator(node.target);
  return found ? std::make_unique<OperatorStep>(node, std::move(*found), slots) : nullptr;
}

}  // namespace hortator::exported
