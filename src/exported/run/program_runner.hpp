#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <hortator/models/exported.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exported/graph/program.hpp"
#include "exported/run/input_check.hpp"
#include "exported/run/runner.hpp"

namespace hortator::exported {

/// Finds the tensor of a parameter, buffer or constant. Throws ExportFault if there is none.
using FindTensor = std::function<at::Tensor(const InputSpec& input)>;

/// A program with its tensors: from the tensors that a user gives to those that he gets.
class ProgramRunner {
 public:
  ProgramRunner(const Program& program, const FindTensor& find);

  /// Writes the buffers and the inputs that the program changes.
  ExportedOutputs run(const std::vector<at::Tensor>& inputs);

  const std::vector<std::string>& input_names() const { return input_names_; }
  const std::shared_ptr<const std::vector<std::string>>& output_names() const { return output_names_; }
  /// Whether an operator is in its training mode: dropout, batch normalisation.
  bool trains() const { return trains_; }

 private:
  /// An input of the graph.
  struct Source {
    InputSpec::Kind kind;
    at::Tensor tensor = {};  ///< of a parameter, buffer or constant
    bool is_number = false;  ///< of the user
    bool moves = false;      ///< with the parameters, because it is not in the module's state dict
  };
  /// An output of the graph.
  struct Target {
    OutputSpec::Kind kind;
    std::size_t input = 0;  ///< the graph's input that gets the value
  };

  void refuse_divided_sequence() const;
  c10::Device device(const std::vector<at::Tensor>& inputs) const;
  std::vector<c10::IValue> graph_inputs(const std::vector<at::Tensor>& inputs, c10::Device device);

  std::vector<std::string> input_names_;
  std::shared_ptr<const std::vector<std::string>> output_names_;
  std::vector<Source> sources_;
  std::vector<Target> targets_;
  InputCheck check_;
  GraphRunner runner_;
  bool trains_;
  std::optional<std::string> on_own_tokens_;  ///< a node that a divided sequence does not allow
};

}  // namespace hortator::exported
