#include "parallel/context/ring_means.hpp"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "mpi/local_work.hpp"

namespace hortator::parallel {
namespace {

AttentionMeans of_no_keys(const RingOperands& mine) {
  const auto options = options_of_sums(mine);
  auto sizes = mine.queries.sizes().vec();
  sizes.back() = mine.values.size(-1);
  const auto output = at::zeros(sizes, options);
  sizes.back() = 1;
  return {.output = output, .logsumexp = at::full(sizes, -std::numeric_limits<double>::infinity(), options)};
}

void add_block(const AttentionMeans& all, const RingOperands& mine, const TravellingBlocks& blocks, const Ring& ring) {
  for (const auto& tile : tiles_of(ring, blocks.source())) {
    merge({.output = rows(all.output, tile.queries), .logsumexp = rows(all.logsumexp, tile.queries)},
          attend(block_of(mine, blocks.tensors(), ring, tile)));
    ring.group.communicator_of(mine.queries).advance();
  }
}

}  // namespace

AttentionMeans attend_in_ring(const RingOperands& mine, const Ring& ring) {
  std::optional<TravellingBlocks> blocks;
  AttentionMeans all;
  mpi::all_or_none(ring.group.host, [&] {
    blocks.emplace(travelling(mine, ring));
    all = of_no_keys(mine);
  });
  mpi::LocalWork work;
  for (int step = 0; step < ring.group.size(); ++step) {
    const bool is_last = step + 1 == ring.group.size();
    if (!is_last) blocks->start();
    work.run([&] { add_block(all, mine, *blocks, ring); });
    if (!is_last) blocks->finish();
  }
  work.agree(ring.group.host);
  return all;
}

}  // namespace hortator::parallel
