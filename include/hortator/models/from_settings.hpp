#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <filesystem>
#include <functional>
#include <hortator/export.hpp>
#include <hortator/schedule.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hortator {

namespace models {

/// A model that settings describe: tensors in, tensors out.
class HORTATOR_API TensorModule : public torch::nn::Module {
 public:
  using Tensors = std::vector<at::Tensor>;
  virtual Tensors forward(const Tensors& inputs) = 0;
};

}  // namespace models

/// An entry of `models:` in a settings file. Prepare the network, optimizer and schedule as your own.
struct ConfiguredModel {
  using Tensors = std::vector<at::Tensor>;
  /// Computes the loss from outputs, targets and further arguments. Throws UsageError where they do not fit.
  using Loss = std::function<at::Tensor(const Tensors& outputs, const Tensors& targets, const Tensors& arguments)>;

  std::shared_ptr<models::TensorModule> network = {};
  Loss loss = {};
  std::unique_ptr<torch::optim::Optimizer> optimizer = {};  ///< null if the settings have none
  std::optional<Schedule> schedule = {};
  std::optional<double> clip_grad_norm = {};
  std::optional<double> clip_grad_value = {};
};

/// Makes the entry `name` under `models:` of a YAML file, which the guide "Inside simulation codes" describes. Throws
/// UsageError with file, line and the nearest name for what the settings may not hold. Local: all ranks call it.
HORTATOR_API ConfiguredModel from_settings(const std::filesystem::path& file, const std::string& name);

}  // namespace hortator
