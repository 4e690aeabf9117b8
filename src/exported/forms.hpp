#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/models/exported.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exported/module_tensors.hpp"
#include "exported/run/program_runner.hpp"

namespace hortator::exported {

/// The programs of a model, for training and for evaluation, and the tensors that they share.
class Forms {
 public:
  Forms(ModuleTensors tensors, std::unique_ptr<ProgramRunner> program, std::unique_ptr<ProgramRunner> evaluation)
      : tensors_(std::move(tensors)), program_(std::move(program)), evaluation_(std::move(evaluation)) {}

  /// Throws UsageError, in evaluation, for a program that trains if it is the only one, and for inputs that it refuses.
  ExportedOutputs run(const std::vector<at::Tensor>& inputs, bool is_training);

  const ModuleTensors& tensors() const { return tensors_; }
  const std::vector<std::string>& input_names() const { return program_->input_names(); }
  const std::vector<std::string>& output_names() const { return *program_->output_names(); }

 private:
  ModuleTensors tensors_;
  std::unique_ptr<ProgramRunner> program_;
  std::unique_ptr<ProgramRunner> evaluation_;  ///< null: the other one is used
};

}  // namespace hortator::exported
