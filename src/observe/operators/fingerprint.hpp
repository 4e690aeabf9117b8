#pragma once

#include <ATen/core/Tensor.h>

#include "observe/operators/operator_record.hpp"

namespace hortator::observe {

/// Whether the tensor has memory that can be read now.
bool has_memory(const at::Tensor& tensor);

/// Reads the tensor, which has memory, once. Equal on all machines of the same byte order, whatever the strides.
TensorRecord fingerprint(const at::Tensor& tensor);

/// The same with type, sizes and bits only.
TensorRecord brief_fingerprint(const at::Tensor& tensor);

}  // namespace hortator::observe
