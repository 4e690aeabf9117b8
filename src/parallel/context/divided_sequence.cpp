#include "parallel/context/divided_sequence.hpp"

#include <ATen/TensorIndexing.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <numeric>

#include "comm/transfers.hpp"
#include "parallel/collectives/differentiable.hpp"

namespace hortator::parallel {
namespace {

bool all_equal(const std::vector<std::int64_t>& sizes) {
  return std::ranges::adjacent_find(sizes, std::not_equal_to()) == sizes.end();
}

// From the order of the ranks to that of the sequence.
at::Tensor in_order(const at::Tensor& of_ranks, std::int64_t dim, const SequenceLayout& layout) {
  if (layout.ranks() == 1) return of_ranks;
  std::vector<at::Tensor> parts;
  for (const auto& move : layout.moves())
    parts.push_back(of_ranks.narrow(dim, move.in_rank_order, move.in_sequence.size()));
  return at::cat(parts, dim);
}

at::Tensor by_ranks(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout) {
  std::vector<at::Tensor> parts;
  for (int rank = 0; rank < layout.ranks(); ++rank) parts.push_back(part_of_sequence(whole, dim, layout, rank));
  return at::cat(parts, dim);
}

at::Tensor gathered(const at::Tensor& part, std::int64_t dim, const SequenceLayout& layout, comm::Communicator& over) {
  const auto sizes = layout.sizes();
  return in_order(all_equal(sizes) ? comm::gather_along(over, part, dim) : comm::gather_along(over, part, dim, sizes),
                  dim, layout);
}

// Ranks with parts of different sizes add up the whole.
at::Tensor reduced(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout, comm::Communicator& over) {
  const auto sizes = layout.sizes();
  const auto of_ranks = by_ranks(whole.detach(), dim, layout);
  if (all_equal(sizes)) return comm::reduce_scatter_along(over, of_ranks, dim, comm::ReduceOp::sum);
  over.all_reduce(of_ranks, comm::ReduceOp::sum).wait();
  const auto before = std::accumulate(sizes.begin(), sizes.begin() + over.rank(), std::int64_t{0});
  return of_ranks.narrow(dim, before, sizes[static_cast<std::size_t>(over.rank())]).contiguous();
}

}  // namespace

at::Tensor part_of_sequence(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout, int rank) {
  std::vector<at::Tensor> parts;
  for (const auto& range : layout.ranges(rank)) parts.push_back(whole.narrow(dim, range.begin, range.size()));
  return at::cat(parts, dim);
}

at::Tensor gather_sequence(const at::Tensor& part, std::int64_t dim, const SequenceLayout& layout,
                           comm::Communicator& over) {
  return apply(part, {.forward = [=, &over](const at::Tensor& it) { return gathered(it, dim, layout, over); },
                      .backward = [=, &over](const at::Tensor& it) { return reduce_sequence(it, dim, layout, over); }});
}

at::Tensor reduce_sequence(const at::Tensor& whole, std::int64_t dim, const SequenceLayout& layout,
                           comm::Communicator& over) {
  return apply(whole,
               {.forward = [=, &over](const at::Tensor& it) { return reduced(it, dim, layout, over); },
                .backward = [=, &over](const at::Tensor& it) { return gather_sequence(it, dim, layout, over); }});
}

at::Tensor tokens_at(const at::Tensor& states, const at::Tensor& positions, const SequenceLayout& layout,
                     comm::Communicator& over) {
  const auto whole = at::arange(layout.length(), positions.options());
  const auto is_at = positions.unsqueeze(1).eq(part_of_sequence(whole, 0, layout, over.rank()));  // [batch, own]
  const auto rows = at::arange(positions.size(0), positions.options());
  const auto own = states.index({rows, is_at.to(at::kLong).argmax(1)});
  return all_reduce(own.masked_fill(is_at.any(1).logical_not().unsqueeze(-1), 0), over, ResultUse::differs);
}

at::Tensor max_over(const at::Tensor& own, comm::Communicator& over) {
  auto max = own.detach().clone(at::MemoryFormat::Contiguous);
  over.all_reduce(max, comm::ReduceOp::max).wait();
  return max;
}

}  // namespace hortator::parallel
