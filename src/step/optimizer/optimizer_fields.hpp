#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

namespace hortator::step {

/// Receives each field of an optimizer's record by name and reference, to read or to replace it.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(std::string_view name, double& value) = 0;
  virtual void field(std::string_view name, std::int64_t& value) = 0;
  virtual void field(std::string_view name, bool& value) = 0;
  virtual void field(std::string_view name, at::Tensor& value) = 0;
  virtual void field(std::string_view name, std::deque<at::Tensor>& value) = 0;
};

/// The state that LibTorch's optimizers keep for one parameter. False for a type that is not in the table.
bool visit_fields(torch::optim::OptimizerParamState& state, FieldVisitor& visitor);
/// The options of one parameter group. False for a type that is not in the table.
bool visit_fields(torch::optim::OptimizerOptions& options, FieldVisitor& visitor);

/// A fresh, empty state record of the kind that belongs to these options; null for a type that is not in the table.
std::unique_ptr<torch::optim::OptimizerParamState> make_state(const torch::optim::OptimizerOptions& options);

/// Are the tensors in a state shaped as their parameter? LBFGS keeps those of all parameters in one.
bool has_moments_by_parameter(const torch::optim::OptimizerOptions& options);

}  // namespace hortator::step
