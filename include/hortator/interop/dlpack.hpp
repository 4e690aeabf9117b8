#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/export.hpp>

// The structs of DLPack, of <ATen/dlpack.h> or of another copy of dlpack.h.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace hortator {

/// A tensor that shares the memory of another library's: CuPy, JAX, NumPy, TVM, or a solver that fills in the struct.
/// No data is copied. It owns the struct, whose deleter it calls when the last tensor of this memory is gone. Throws
/// UsageError for NULL, another major version of DLPack, and types, devices or strides that LibTorch does not have; the
/// caller then keeps the struct. Memory that its owner has marked as read-only must not be written through the tensor.
/// The owner's work on a device must be done, or be ordered before the tensor's by the same stream.
HORTATOR_API at::Tensor from_dlpack(DLManagedTensor* tensor);
HORTATOR_API at::Tensor from_dlpack(DLManagedTensorVersioned* tensor);

/// A struct of DLPack that shares the memory of the tensor and keeps it alive. No data is copied. The caller owns the
/// struct and calls its deleter, or passes it to a library that does. Throws UsageError for a tensor with a gradient
/// graph, which the other library would not see, and for sparse and quantised tensors: detach() or convert it first.
HORTATOR_API DLManagedTensor* to_dlpack(const at::Tensor& tensor);
/// The same with version and flags, as newer libraries expect.
HORTATOR_API DLManagedTensorVersioned* to_dlpack_versioned(const at::Tensor& tensor);

}  // namespace hortator
