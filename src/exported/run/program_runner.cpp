#include "exported/run/program_runner.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "exported/file/fault.hpp"
#include "exported/run/own_tokens.hpp"
#include "runtime/sequence/divided_sequence.hpp"

namespace hortator::exported {
namespace {

using In = InputSpec::Kind;
using Out = OutputSpec::Kind;

/// Without those that are constants of the export.
std::vector<std::string> names_of_tensors(const Program& program) {
  std::vector<std::string> names;
  std::size_t next = 0;
  for (const auto& input : program.inputs) {
    if (input.kind == In::user) names.push_back(program.input_names[next]);
    if (input.kind == In::user || input.kind == In::fixed) ++next;
  }
  return names;
}

/// The graph's input that an output is written to.
std::size_t input_written(const Program& program, const OutputSpec& output) {
  const auto wanted = output.kind == Out::buffer      ? In::buffer
                      : output.kind == Out::parameter ? In::parameter
                                                      : In::user;
  const auto found = std::ranges::find_if(
      program.inputs, [&](const InputSpec& input) { return input.kind == wanted && input.name == output.name; });
  if (found == program.inputs.end())
    throw ExportFault(text::concat("an output changes ", text::quote(output.name), ", which is not an input"));
  return static_cast<std::size_t>(found - program.inputs.begin());
}

const Argument* argument_of(const Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.inputs, name, &NamedArgument::name);
  return found == node.inputs.end() ? nullptr : &found->value;
}

bool is_true(const Argument* argument) {
  const auto* flag = argument == nullptr ? nullptr : std::get_if<bool>(&argument->content);
  return flag != nullptr && *flag;
}

bool is_zero(const Argument* argument) {
  if (argument == nullptr) return false;
  const auto* real = std::get_if<double>(&argument->content);
  const auto* whole = std::get_if<std::int64_t>(&argument->content);
  return (real != nullptr && *real == 0) || (whole != nullptr && *whole == 0);
}

/// Whether a node computes something else in training.
bool is_of_training(const Node& node) {
  const auto* of_attention = argument_of(node, "dropout_p");
  if (of_attention != nullptr && !is_zero(of_attention)) return true;
  if (!is_true(argument_of(node, "train")) && !is_true(argument_of(node, "training"))) return false;
  if (is_zero(argument_of(node, "p")) || is_zero(argument_of(node, "dropout"))) return false;  // of layers, of an LSTM
  if (node.target.find("batch_norm") == std::string::npos) return true;
  const auto* mean = argument_of(node, "running_mean");  // without it, evaluation uses statistics of the batch as well
  return mean != nullptr && !mean->is_none();
}

bool has_training_flag(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return is_of_training(node) || std::ranges::any_of(node.inputs, [](const NamedArgument& input) {
             const auto* nested = std::get_if<std::shared_ptr<const Graph>>(&input.value.content);
             return nested != nullptr && has_training_flag(**nested);
           });
  });
}

at::Tensor tensor_of(const c10::IValue& value) {
  if (value.isNone() || value.isString()) return {};
  return value.isTensor() ? value.toTensor() : at::scalar_to_tensor(value.toScalar());
}

}  // namespace

ProgramRunner::ProgramRunner(const Program& program, const FindTensor& find)
    : input_names_(names_of_tensors(program)),
      output_names_(std::make_shared<const std::vector<std::string>>(program.output_names)),
      check_(program, input_names_),
      runner_(program.graph),
      trains_(has_training_flag(program.graph)),
      on_own_tokens_(node_on_own_tokens(program.graph)) {
  for (const auto& input : program.inputs) {
    auto& source = sources_.emplace_back(Source{.kind = input.kind});
    const bool is_stored = input.kind != In::user && input.kind != In::fixed;
    if (is_stored) source.tensor = find(input);
    source.is_number = input.kind == In::user && !input.shape;
    source.moves = input.kind == In::constant || (input.kind == In::buffer && !input.is_persistent);
  }
  for (const auto& output : program.outputs) {
    auto& target = targets_.emplace_back(Target{.kind = output.kind});
    if (output.kind != Out::user) target.input = input_written(program, output);
  }
}

c10::Device ProgramRunner::device(const std::vector<at::Tensor>& inputs) const {
  for (const auto& source : sources_) {
    if (source.tensor.defined() && !source.moves) return source.tensor.device();
  }
  return inputs.empty() ? c10::Device(c10::kCPU) : inputs.front().device();
}

std::vector<c10::IValue> ProgramRunner::graph_inputs(const std::vector<at::Tensor>& inputs, c10::Device device) {
  std::vector<c10::IValue> values;
  values.reserve(sources_.size());
  auto next = inputs.begin();
  for (auto& source : sources_) {
    if (source.kind == In::user) {
      values.push_back(source.is_number ? c10::IValue(next->item()) : c10::IValue(*next));
      ++next;
      continue;
    }
    // the same tensor, because the other form of the model may have it, too
    if (source.moves && source.tensor.device() != device) source.tensor.set_data(source.tensor.to(device));
    values.push_back(source.kind == In::fixed ? c10::IValue() : c10::IValue(source.tensor));
  }
  return values;
}

void ProgramRunner::refuse_divided_sequence() const {
  if (!on_own_tokens_ || !runtime::divided_sequence()) return;
  throw UsageError(
      {.what = text::concat("An exported model was called within maybe_context_parallel, and its graph has ",
                            *on_own_tokens_),
       .why = "that would see this rank's own tokens only",
       .hint = "export the model with scaled_dot_product_attention, and give it positions and masks as "
               "inputs"});
}

ExportedOutputs ProgramRunner::run(const std::vector<at::Tensor>& inputs) {
  refuse_divided_sequence();
  check_.require_allowed(inputs);
  const auto on = device(inputs);
  auto given = graph_inputs(inputs, on);
  const auto values = runner_.run(given, on);
  ExportedOutputs results{.names = output_names_};
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const auto& target = targets_[i];
    auto tensor = tensor_of(values[i]);
    if (target.kind == Out::user) {
      results.tensors.push_back(std::move(tensor));
      results.are_numbers.push_back(values[i].isScalar());
    } else if (target.kind == Out::input) {
      given[target.input].toTensor().copy_(tensor);
    } else {
      const at::NoGradGuard no_grad;
      given[target.input].toTensor().copy_(tensor);
    }
  }
  return results;
}

}  // namespace hortator::exported
