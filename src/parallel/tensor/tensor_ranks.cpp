#include "parallel/tensor/tensor_ranks.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <hortator/error.hpp>
#include <span>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/dispatch_keys.hpp"
#include "parallel/tensor/trial.hpp"

namespace hortator::parallel {
namespace {

/// While it lives, operators compute with the parts, and make no graph.
struct WithParts {
  c10::impl::ExcludeDispatchKeyGuard guard{interception::divided_key};
  at::NoGradGuard no_grad{};
};

/// [.., blocks x part, ..] as [.., blocks, part, ..], or with `ranks` between them.
Sizes in_blocks(at::IntArrayRef sizes, const Division& division, std::int64_t ranks) {
  auto blocks = sizes.vec();
  const auto dim = blocks.begin() + division.dim;
  const auto part = *dim / (division.blocks * ranks);
  *dim = division.blocks;
  blocks.insert(dim + 1, {ranks, part});
  return blocks;
}

/// Without the padding, or with zeros as padding, at the end of the divided dimension.
at::Tensor trimmed(const at::Tensor& tensor, const Division& division) {
  const auto size = tensor.size(division.dim);
  return division.padding > 0 ? tensor.narrow(division.dim, 0, size - division.padding) : tensor;
}
at::Tensor extended(const at::Tensor& whole, const Division& division) {
  if (division.padding == 0) return whole;
  auto sizes = whole.sizes().vec();
  sizes[static_cast<std::size_t>(division.dim)] = division.padding;
  return at::cat({whole, at::zeros(sizes, whole.options())}, division.dim);
}

comm::Communicator& in_use(comm::Communicator* communicator) {
  if (communicator != nullptr) return *communicator;
  throw UsageError({.what = "A tensor that is divided among ranks is used after its Accelerator has ended",
                    .why = "its parts cannot be exchanged any more",
                    .hint = "keep the Accelerator until the last use of the model"});
}

}  // namespace

comm::Communicator& TensorRanks::communicator_of(const at::Tensor& tensor) const {
  return in_use(tensor.is_cpu() ? on_cpu_ : on_device_);
}

comm::Communicator& TensorRanks::on_cpu() const { return in_use(on_cpu_); }

bool TensorRanks::abandon(std::string_view reason) const noexcept {
  const bool is_free = on_cpu_ == nullptr || on_cpu_->abandon(reason);
  return (on_device_ == nullptr || on_device_ == on_cpu_ || on_device_->abandon(reason)) && is_free;
}

at::Tensor TensorRanks::reduce(const at::Tensor& tensor, comm::ReduceOp op) const {
  const WithParts here;
  auto result = tensor.clone(at::MemoryFormat::Contiguous);
  if (is_trial_) return result;
  ++traffic_.sums;
  traffic_.sum_bytes += static_cast<std::int64_t>(result.nbytes());
  communicator_of(result).all_reduce(result, op).wait();
  return result;
}

at::Tensor TensorRanks::sum(const at::Tensor& tensor) const { return reduce(tensor, comm::ReduceOp::sum); }
at::Tensor TensorRanks::max(const at::Tensor& tensor) const { return reduce(tensor, comm::ReduceOp::max); }

at::Tensor TensorRanks::join(const at::Tensor& part, const Division& division) const {
  const WithParts here;
  if (is_trial_) throw TrialFailure();
  const interception::Hold present(std::span(&part, 1), interception::Access::read);
  const auto input = part.detach().contiguous();
  auto sizes = input.sizes().vec();
  sizes.insert(sizes.begin(), size_);
  auto all = at::empty(sizes, input.options());
  ++traffic_.gathers;
  traffic_.gather_bytes += static_cast<std::int64_t>(all.nbytes());
  communicator_of(all).all_gather(all.flatten(), input.flatten()).wait();
  const auto whole = whole_sizes(input.sizes(), {.dim = division.dim, .blocks = division.blocks}, size_);
  if (division.dim == 0 && division.blocks == 1) return trimmed(all.view(whole), division);
  auto blocks = in_blocks(input.sizes(), division, 1);
  blocks.insert(blocks.begin(), size_);
  blocks.erase(blocks.begin() + division.dim + 2);  // [ranks, .., blocks, part, ..]
  return trimmed(all.view(blocks).movedim(0, division.dim + 1).reshape(whole), division).contiguous();
}

at::Tensor TensorRanks::sum_part(const at::Tensor& addend, const Division& division) const {
  const WithParts here;
  if (is_trial_) return part_of(addend, division);
  const auto equal = extended(addend.detach(), division);
  const auto of_ranks =
      equal.reshape(in_blocks(equal.sizes(), division, size_)).movedim(division.dim + 1, 0).contiguous();
  auto part = at::empty(part_sizes(addend.sizes(), division, size_), addend.options().requires_grad(false));
  ++traffic_.part_sums;
  traffic_.part_sum_bytes += static_cast<std::int64_t>(of_ranks.nbytes());
  communicator_of(part).reduce_scatter(part.flatten(), of_ranks.flatten(), comm::ReduceOp::sum).wait();
  return part;
}

at::Tensor TensorRanks::part_of(const at::Tensor& whole, const Division& division) const {
  const WithParts here;
  const auto equal = extended(whole.detach(), division);
  return equal.reshape(in_blocks(equal.sizes(), division, size_))
      .select(division.dim + 1, index_)
      .reshape(part_sizes(whole.sizes(), division, size_))
      .clone(at::MemoryFormat::Contiguous);
}

at::Tensor TensorRanks::own_elements(const at::Tensor& covered, const PartRuns& runs, core::Range of_part) const {
  if (covered.numel() == of_part.size()) return covered;
  const WithParts here;
  const auto first = of_part.begin / runs.run * runs.run;
  return covered.view({-1, size_, runs.run})
      .select(1, index_)
      .reshape({-1})
      .narrow(0, of_part.begin - first, of_part.size())
      .clone();
}

void TensorRanks::note_gathered(const std::string& name, const std::string& operands) const {
  if (strict_) {
    throw UsageError({.what = text::concat(name, " has no rule for tensors that are divided among ranks: ", operands),
                      .why = "its operands would be gathered on each rank, which parallel.strict forbids",
                      .hint = "replace the operator, replicate the parameters before it, or turn parallel.strict off"});
  }
  if (++gathered_[name] > 1 || index_ != 0) return;
  log::warn("tensor parallelism: ", name, " has no rule for these divided tensors: ", operands,
            ". They are gathered on each rank each time, which is correct and slow");
}

}  // namespace hortator::parallel
