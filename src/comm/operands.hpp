#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "comm/reduce_op.hpp"

/// What every back end demands of its tensors, said in the same words.
namespace hortator::comm {

/// "float32 [3, 4]"
std::string describe(const at::Tensor& tensor);

/// Throws unless `tensor` is defined, dense, and on `device`.
void check_operand(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend);

/// The same of a tensor that the operation writes to, which autograd must not be watching: its history would be wrong.
void check_result(const at::Tensor& tensor, c10::Device device, std::string_view operation, std::string_view backend);

/// Throws unless `root` is one of so many ranks.
void check_root(int root, int ranks);

/// Throws where the operation has no meaning for this type: a mean of whole numbers, the largest of complex ones.
void check_reducible(at::ScalarType type, ReduceOp op);

/// Throws unless `whole` holds `parts` times `part` along dimension 0.
void check_parts(const at::Tensor& whole, const at::Tensor& part, int parts, std::string_view operation);

}  // namespace hortator::comm
