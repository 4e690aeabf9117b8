#include "parallel/context/ring_gradients.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "mpi/local_work.hpp"

namespace hortator::parallel {
namespace {

/// The tensors of one rank's backward pass. Construction allocates them and does not communicate.
class GradientSums {
 public:
  GradientSums(const RingOperands& mine, const AttentionMeans& means, const at::Tensor& output_gradient,
               bool learns_mask, const Ring& ring)
      : blocks(travelling(mine, ring)),
        sums({mine.keys.sizes().vec(), mine.values.sizes().vec()}, options_of_sums(mine), ring.layout,
             ring.group.communicator_of(mine.keys)),
        mine_(mine),
        ring_(ring),
        arrived_{.gradient = output_gradient,
                 .logsumexp = means.logsumexp,
                 .mean = (output_gradient.to(means.logsumexp.scalar_type()) * means.output).sum(-1, /*keepdim=*/true)},
        addends_({mine.keys.sizes().vec(), mine.values.sizes().vec()}, options_of_sums(mine), ring.layout),
        of_own_{.queries = at::zeros(mine.queries.sizes(), options_of_sums(mine))} {
    if (learns_mask) of_own_.mask = at::zeros(mine.mask->sizes(), options_of_sums(mine));
    sums.elements().zero_();
  }

  TravellingBlocks blocks;  ///< keys and values
  TravellingBlocks sums;    ///< of their gradients

  /// Adds what the present block contributes to the gradients of this rank's queries and mask, and computes what
  /// add_to_sums() adds to those of the block.
  void add_block() {
    addends_.elements_of(blocks.source()).zero_();
    const auto of_block = addends_.tensors_of(blocks.source());
    for (const auto& tile : tiles_of(ring_, blocks.source())) {
      const OutputGradient arrived{.gradient = rows(arrived_.gradient, tile.queries),
                                   .logsumexp = rows(arrived_.logsumexp, tile.queries),
                                   .mean = rows(arrived_.mean, tile.queries)};
      const auto part = gradients_of(block_of(mine_, blocks.tensors(), ring_, tile), arrived);
      rows(of_own_.queries, tile.queries).add_(part.queries);
      rows(of_block[0], tile.keys).add_(part.keys);
      rows(of_block[1], tile.keys).add_(part.values);
      if (of_own_.mask.defined()) add_to_mask(part.scores, tile);
      ring_.group.communicator_of(mine_.queries).advance();
    }
  }

  void add_to_sums() { sums.elements().add_(addends_.elements_of(sums.source())); }

  RingGradients result() {
    const auto home = sums.tensors();
    of_own_.keys = home[0];
    of_own_.values = home[1];
    return of_own_;
  }

 private:
  void add_to_mask(const at::Tensor& scores, const AttentionTile& tile) const {
    const auto part = tile_of_mask(of_own_.mask, tile);
    part.add_(scores.sum_to_size(part.sizes()));
  }

  const RingOperands& mine_;
  const Ring& ring_;
  OutputGradient arrived_;
  BlockMemory addends_;
  RingGradients of_own_;
};

}  // namespace

RingGradients gradients_in_ring(const RingOperands& mine, const AttentionMeans& means,
                                const at::Tensor& output_gradient, bool learns_mask, const Ring& ring) {
  std::optional<GradientSums> all;
  mpi::all_or_none(ring.group.host, [&] { all.emplace(mine, means, output_gradient, learns_mask, ring); });
  mpi::LocalWork work;
  const int ranks = ring.group.size();
  for (int step = 0; step < ranks; ++step) {
    const bool is_last = step + 1 == ranks;
    if (!is_last) all->blocks.start();
    work.run([&] { all->add_block(); });
    if (step > 0) all->sums.finish();
    work.run([&] { all->add_to_sums(); });
    if (ranks > 1) all->sums.start();
    if (!is_last) all->blocks.finish();
  }
  if (ranks > 1) all->sums.finish();  // home, after as many steps as there are ranks
  work.agree(ring.group.host);
  return all->result();
}

}  // namespace hortator::parallel
