#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>

namespace hortator::step {

/// Receives each field of an optimizer's state or options by name and reference, to read or replace it.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, std::int64_t& value) = 0;
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, at::Tensor& value) = 0;
  virtual void field(std::string_view name, std::deque<at::Tensor>& value) = 0;
};

/// Visits the state that one of LibTorch's optimizers keeps for one parameter. False for an unknown type.
bool visit_fields(torch::optim::OptimizerParamState& state, FieldVisitor& visitor);
/// Visits the options of one parameter group. False for an unknown type.
bool visit_fields(torch::optim::OptimizerOptions& options, FieldVisitor& visitor);

/// Replaces each tensor of the state that one of LibTorch's optimizers keeps for one parameter.
void replace_tensors(torch::optim::OptimizerParamState& state,
                     const std::function<at::Tensor(const at::Tensor&)>& replace);

/// A new, empty state of the type that belongs to these options; null for an unknown type.
std::unique_ptr<torch::optim::OptimizerParamState> make_state(const torch::optim::OptimizerOptions& options);

/// Whether each tensor of a state has its parameter's shape. LBFGS keeps one state for all parameters.
bool has_moments_by_parameter(const torch::optim::OptimizerOptions& options);

}  // namespace hortator::step
