#include "accelerator/structures/gathering.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "accelerator/structures/packing.hpp"
#include "accelerator/structures/same_structure.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::accelerator {
namespace {

// Joins the ranks' tensors along dimension 0; single numbers become a vector. They are sent in their own shape, which
// the communicator compares. @collective
at::Tensor gather_joined(const parallel::RankGroup& ranks, const at::Tensor& part) {
  auto& communicator = ranks.communicator_of(part);
  if (!part.defined()) communicator.all_gather(part, part).wait();  // throws
  auto sizes = part.dim() == 0 ? std::vector<std::int64_t>{1} : part.sizes().vec();
  sizes[0] *= ranks.size();
  auto joined = at::empty(sizes, part.options().requires_grad(false));
  communicator.all_gather(joined, part.detach()).wait();
  return joined;
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
  const auto whole = parallel::whole_values(tensor);
  if (ranks.size() == 1) return whole;
  const at::NoGradGuard no_grad;
  return gather_joined(ranks, whole);
}

void gather(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves) {
  for (const auto& leaf : leaves) *leaf.tensor = parallel::whole_values(*leaf.tensor);
  if (ranks.size() == 1) return;
  const at::NoGradGuard no_grad;
  check_same_structure(ranks.host, "gather", leaves, Alike::shapes);
  in_packs(tensors_of(leaves), [&](const auto& pack_of, const auto& tensors) {
    if (pack_of.size() == 1) {
      *leaves[pack_of[0]].tensor = gather_joined(ranks, tensors[0]);
      return;
    }
    const auto row = pack(tensors);
    const auto rows = gather_joined(ranks, row).view({ranks.size(), row.numel()});
    const auto parts = unpack(rows, tensors);
    for (std::size_t i = 0; i < pack_of.size(); ++i) *leaves[pack_of[i]].tensor = join(parts[i], tensors[i]);
  });
}

}  // namespace hortator::accelerator
