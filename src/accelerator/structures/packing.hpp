#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

/// Small tensors of a structure are sent together, since a collective costs more than their bytes.
namespace hortator::accelerator {

/// Tensors up to this size are copied into a pack.
constexpr std::size_t small_tensor_bytes = std::size_t{16} << 10;

/// Groups tensors into packs, one collective each: small ones of one type and device together, each other one in a pack
/// of its own. Returns their indices; the order depends only on types and shapes.
std::vector<std::vector<std::size_t>> plan_packs(const std::vector<at::Tensor>& tensors);

/// Calls work(indices of one pack, its tensors) for each pack.
template <typename Work>
void in_packs(const std::vector<at::Tensor>& tensors, const Work& work) {
  for (const auto& pack : plan_packs(tensors)) {
    std::vector<at::Tensor> together;
    for (const auto i : pack) together.push_back(tensors[i]);
    work(pack, together);
  }
}

/// Concatenates the tensors to one row.
at::Tensor pack(const std::vector<at::Tensor>& tensors);

/// Splits the ranks' rows: result i holds part i of every row, copied. `like` has the shapes of one rank's tensors.
std::vector<at::Tensor> unpack(const at::Tensor& rows, const std::vector<at::Tensor>& like);

}  // namespace hortator::accelerator
