#include "accelerator/structures/gathering.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "accelerator/structures/packing.hpp"
#include "accelerator/structures/same_structure.hpp"

namespace hortator::accelerator {
namespace {

// Gathers the ranks' parts, one row each.
at::Tensor gather_rows(const parallel::RankGroup& ranks, const at::Tensor& part) {
  auto& communicator = ranks.communicator_of(part);
  if (!part.defined()) communicator.all_gather(part, part).wait();  // throws
  auto rows = at::empty({ranks.size(), part.numel()}, part.options().requires_grad(false));
  communicator.all_gather(rows.view({-1}), part.detach().reshape({-1})).wait();
  return rows;
}

at::Tensor join(const at::Tensor& rows, const at::Tensor& part) {
  if (part.dim() == 0) return rows.view({-1});
  auto sizes = part.sizes().vec();
  sizes[0] *= rows.size(0);
  return rows.view(sizes);
}

}  // namespace

std::vector<at::Tensor> tensors_of(const std::vector<detail::Leaf>& leaves) {
  std::vector<at::Tensor> tensors;
  for (const auto& leaf : leaves) tensors.push_back(*leaf.tensor);
  return tensors;
}

at::Tensor gather(const parallel::RankGroup& ranks, const at::Tensor& tensor) {
  if (ranks.size() == 1) return tensor;
  const at::NoGradGuard no_grad;
  return join(gather_rows(ranks, tensor), tensor);
}

void gather(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves) {
  if (ranks.size() == 1) return;
  const at::NoGradGuard no_grad;
  check_same_structure(ranks.host, "gather", leaves, Alike::shapes);
  in_packs(tensors_of(leaves), [&](const auto& pack_of, const auto& tensors) {
    if (pack_of.size() == 1) {
      *leaves[pack_of[0]].tensor = join(gather_rows(ranks, tensors[0]), tensors[0]);
      return;
    }
    const auto parts = unpack(gather_rows(ranks, pack(tensors)), tensors);
    for (std::size_t i = 0; i < pack_of.size(); ++i) *leaves[pack_of[i]].tensor = join(parts[i], tensors[i]);
  });
}

}  // namespace hortator::accelerator
