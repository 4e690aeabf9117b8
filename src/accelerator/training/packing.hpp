#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

/// Small tensors of a structure travel together: a collective costs more than their bytes.
namespace hortator::accelerator {

/// Tensors of up to so many bytes are worth a copy.
constexpr std::size_t small_tensor_bytes = std::size_t{16} << 10;

/// Which tensors go in one collective, by their numbers, in an order that depends on types and shapes alone: small ones
/// of one type and device together, each other one by itself.
std::vector<std::vector<std::size_t>> plan_packs(const std::vector<at::Tensor>& tensors);

/// All of them one after the other: one row.
at::Tensor pack(const std::vector<at::Tensor>& tensors);

/// Back from such rows, one a rank: tensor i of all ranks is the part i of every row. Its own memory.
std::vector<at::Tensor> unpack(const at::Tensor& rows, const std::vector<at::Tensor>& like);

}  // namespace hortator::accelerator
