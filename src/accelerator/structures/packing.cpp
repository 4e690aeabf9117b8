#include "accelerator/structures/packing.hpp"

#include <ATen/ops/cat.h>

#include <map>
#include <utility>

namespace hortator::accelerator {

std::vector<std::vector<std::size_t>> plan_packs(const std::vector<at::Tensor>& tensors) {
  using Kind = std::pair<at::ScalarType, c10::DeviceType>;
  std::vector<std::vector<std::size_t>> packs;
  std::map<Kind, std::size_t> pack_of;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& tensor = tensors[i];
    const bool is_small = tensor.defined() && tensor.layout() == at::kStrided && tensor.nbytes() <= small_tensor_bytes;
    const auto known = is_small ? pack_of.find({tensor.scalar_type(), tensor.device().type()}) : pack_of.end();
    if (known != pack_of.end()) {
      packs[known->second].push_back(i);
      continue;
    }
    if (is_small) pack_of.emplace(Kind{tensor.scalar_type(), tensor.device().type()}, packs.size());
    packs.push_back({i});
  }
  return packs;
}

at::Tensor pack(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> rows;
  for (const auto& tensor : tensors) rows.push_back(tensor.detach().reshape({-1}));
  return at::cat(rows);
}

std::vector<at::Tensor> unpack(const at::Tensor& rows, const std::vector<at::Tensor>& like) {
  std::vector<at::Tensor> tensors;
  std::int64_t offset = 0;
  for (const auto& tensor : like) {
    tensors.push_back(rows.narrow(1, offset, tensor.numel()).clone(at::MemoryFormat::Contiguous));
    offset += tensor.numel();
  }
  return tensors;
}

}  // namespace hortator::accelerator
