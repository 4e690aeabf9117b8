#pragma once

#include <ATen/core/Tensor.h>

#include <string>

/// Tensors that get their values later, or never.
namespace hortator::paging {

/// Whether the tensor has elements but no memory.
bool lacks_memory(const at::Tensor& tensor);

/// Whether the tensor's values are deferred.
bool is_deferred(const at::Tensor& tensor);

/// Makes the values that were deferred at construction; afterwards the tensor is an ordinary one.
void settle(const at::Tensor& tensor);

/// Drops the tensor's values, deferred ones included, and its memory. Reading it then throws an error that says `why`.
/// Throws UsageError for a tensor that is paged.
void drop_values(const at::Tensor& tensor, std::string why);

/// Gives the tensor uninitialised memory of its own instead of deferred values; keeps memory that it has. Throws as
/// drop_values().
void give_memory(const at::Tensor& tensor);

}  // namespace hortator::paging
