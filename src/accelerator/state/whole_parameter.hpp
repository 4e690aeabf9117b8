#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "step/model/model_core.hpp"

/// Parameters of prepared models as a whole, one at a time.
namespace hortator::accelerator {

/// A copy of a parameter in the host's memory, with exact values. @collective if it is sharded
at::Tensor exact_copy(const at::Tensor& parameter);

/// Brings in a parameter for another rank to read. @collective if it is sharded
void bring(const at::Tensor& parameter);

/// A copy in the host's memory of a parameter of the model, whole, on the ranks that keep it; undefined on others. No
/// rank has several at a time. Run it by Training::exchange_together(). @collective
at::Tensor whole_copy(const step::ModelCore& model, const std::string& name, const at::Tensor& parameter, bool keeps);

}  // namespace hortator::accelerator
