#pragma once

#include <ATen/core/Tensor.h>

#include <string>

/// Tensors whose values come later, or never.
namespace hortator::paging {

/// Has it elements, and no memory for them?
bool lacks_memory(const at::Tensor& tensor);

/// Are its values only put off?
bool is_deferred(const at::Tensor& tensor);

/// What was put off while it was constructed is done now, and it is a tensor like any other.
void settle(const at::Tensor& tensor);

/// Its values and its memory go, also what was put off: who reads it is told `why` there is nothing. Throws UsageError
/// for a tensor that is paged.
void drop_values(const at::Tensor& tensor, std::string why);

/// Memory of its own, uninitialised, in place of values that were put off; what it has stays. As drop_values().
void give_memory(const at::Tensor& tensor);

}  // namespace hortator::paging
