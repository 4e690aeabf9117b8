#include "parallel/local_sgd/difference_exchange.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>

#include "core/range.hpp"
#include "mpi/collectives.hpp"
#include "parallel/local_sgd/sparse_codes.hpp"
#include "parallel/zero/int8_blocks.hpp"

namespace hortator::parallel {
namespace {

static_assert(sparse_chunk % int8_block_values == 0);

/// A part of the row that is packed at once, so that what packing needs stays small.
constexpr std::int64_t piece_elements = 1024 * sparse_chunk;

template <typename Do>
void for_pieces(const at::Tensor& row, Do&& work) {
  for (std::int64_t begin = 0; begin < row.numel(); begin += piece_elements)
    work(begin, std::min(piece_elements, row.numel() - begin));
}

}  // namespace

DifferenceExchange::DifferenceExchange(comm::Communicator& ranks, const mpi::Communicator& node, OuterWire wire)
    : ranks_(ranks), wire_(wire) {
  const int first = mpi::broadcast(node, ranks.rank(), 0);
  node_ = ranks.split(first, ranks.rank());
  senders_ = ranks.split(node.rank(), ranks.rank());
}

std::int64_t DifferenceExchange::padded(std::int64_t elements) const {
  return core::ceil_div(elements, sparse_chunk) * sparse_chunk;
}

void DifferenceExchange::average(const at::Tensor& row, at::Tensor& unsent, double keep) {
  if (wire_ == OuterWire::whole) return ranks_.all_reduce(row, comm::ReduceOp::mean).wait();
  node_->all_reduce(row, comm::ReduceOp::sum).wait();
  row.div_(ranks_.size());
  if (sends()) wire_ == OuterWire::int8 ? exchange_int8(row) : exchange_sparse(row, unsent, keep);
  node_->broadcast(row, 0).wait();
}

/// The senders' tensors as rows. @collective over the senders
at::Tensor DifferenceExchange::gather(const at::Tensor& mine) {
  auto sizes = mine.sizes().vec();
  sizes.front() *= senders_->size();
  auto all = at::empty(sizes, mine.options());
  senders_->all_gather(all, mine.contiguous()).wait();
  sizes.front() /= senders_->size();
  sizes.insert(sizes.begin(), senders_->size());
  return all.view(sizes);
}

void DifferenceExchange::exchange_int8(const at::Tensor& row) {
  for_pieces(row, [&](std::int64_t begin, std::int64_t size) {
    const auto piece = row.narrow(0, begin, size);
    const auto all = gather(pack_int8(piece));
    piece.zero_();
    const auto one = at::empty_like(piece);
    for (std::int64_t node = 0; node < all.size(0); ++node) {
      unpack_int8(all[node], one);
      piece.add_(one);
    }
  });
}

void DifferenceExchange::exchange_sparse(const at::Tensor& row, at::Tensor& unsent, double keep) {
  if (!unsent.defined()) unsent = at::zeros_like(row);
  unsent.mul_(keep).add_(row);
  row.zero_();
  for_pieces(row, [&](std::int64_t begin, std::int64_t size) {
    const auto kept = unsent.narrow(0, begin, size);
    const auto mine = pack_sparse(kept);
    const auto entries = gather(mine.entries), levels = gather(mine.levels);
    for (std::int64_t node = 0; node < entries.size(0); ++node)
      add_sparse({.entries = entries[node], .levels = levels[node]}, row.narrow(0, begin, size));
    add_sparse({.entries = mine.entries, .levels = -mine.levels}, kept);
  });
}

}  // namespace hortator::parallel
