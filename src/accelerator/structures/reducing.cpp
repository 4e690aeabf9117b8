#include "accelerator/structures/reducing.hpp"

#include <c10/core/GradMode.h>

#include <hortator/error.hpp>

#include "accelerator/structures/gathering.hpp"
#include "accelerator/structures/packing.hpp"
#include "accelerator/structures/same_structure.hpp"
#include "core/text/text.hpp"
#include "parallel/tensor/divided_tensor.hpp"

namespace hortator::accelerator {
namespace {

comm::ReduceOp operation_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::mean:
      return comm::ReduceOp::mean;
    case Reduce::max:
      return comm::ReduceOp::max;
    case Reduce::min:
      return comm::ReduceOp::min;
    case Reduce::product:
      return comm::ReduceOp::product;
    case Reduce::sum:
      break;
  }
  return comm::ReduceOp::sum;
}

// An undefined tensor is passed on to the communicator, whose error is thrown on all ranks.
at::Tensor detached(const at::Tensor& tensor) { return tensor.defined() ? tensor.detach() : tensor; }

void require_scalable(const at::Tensor& tensor, double scale) {
  if (scale == 1 || !tensor.defined() || tensor.is_floating_point() || tensor.is_complex()) return;
  throw UsageError({.what = text::concat("reduce() with the scale ", scale, " got a tensor of type ",
                                         c10::toString(tensor.scalar_type())),
                    .why = "a product with whole numbers would be rounded",
                    .hint = "convert the tensor to a floating-point type first"});
}

at::Tensor scaled(const at::Tensor& result, double scale) { return scale == 1 ? result : result * scale; }

}  // namespace

at::Tensor reduce(const parallel::RankGroup& ranks, const at::Tensor& tensor, Reduce operation, double scale) {
  require_scalable(tensor, scale);
  auto result = tensor.defined() ? parallel::whole_values(tensor).detach().clone() : tensor;
  ranks.communicator_of(result).all_reduce(result, operation_of(operation)).wait();
  return scaled(result, scale);
}

void reduce(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, Reduce operation, double scale) {
  const at::NoGradGuard no_grad;
  check_same_structure(ranks.host, "reduce", leaves, Alike::shapes);
  for (const auto& leaf : leaves) require_scalable(*leaf.tensor, scale);
  in_packs(tensors_of(leaves), [&](const auto& pack_of, const auto& tensors) {
    if (pack_of.size() == 1) {
      *leaves[pack_of[0]].tensor = reduce(ranks, tensors[0], operation, scale);
      return;
    }
    const auto row = pack(tensors);
    ranks.communicator_of(row).all_reduce(row, operation_of(operation)).wait();
    const auto parts = unpack(scaled(row, scale).unsqueeze(0), tensors);
    for (std::size_t i = 0; i < pack_of.size(); ++i) *leaves[pack_of[i]].tensor = parts[i].view(tensors[i].sizes());
  });
}

void broadcast(const parallel::RankGroup& ranks, const at::Tensor& tensor, int root) {
  ranks.communicator_of(tensor).broadcast(detached(tensor), root).wait();
}

void broadcast(const parallel::RankGroup& ranks, const std::vector<detail::Leaf>& leaves, int root) {
  check_same_structure(ranks.host, "broadcast", leaves, Alike::shapes);
  std::vector<at::Tensor> on_cpu;
  std::vector<at::Tensor> on_device;
  for (const auto& tensor : tensors_of(leaves)) (tensor.is_cpu() ? on_cpu : on_device).push_back(tensor.detach());
  for (const auto* tensors : {&on_cpu, &on_device}) {
    if (!tensors->empty()) ranks.communicator_of(tensors->front()).broadcast_all(*tensors, root).wait();
  }
}

}  // namespace hortator::accelerator
