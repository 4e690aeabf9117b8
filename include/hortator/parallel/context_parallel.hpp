#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <memory>
#include <vector>

namespace hortator {

class Accelerator;

/// A tensor of a batch that Accelerator::maybe_context_parallel() cuts.
struct SequenceBuffer {
  at::Tensor* tensor = nullptr;
  std::int64_t dim = 1;  ///< that runs along the sequence
};

/// While it lives, sequences are divided over the ranks along the mesh's axis context
/// (Accelerator::maybe_context_parallel()). Each buffer is cut along its dimension, in place, and is whole again
/// afterwards; this rank's part is one chunk of the first and one of the second half, so that causal attention is the
/// same work on all ranks. Every scaled_dot_product_attention in between sees the keys of all ranks, in the order of
/// the whole sequence: with is_causal, with a mask of the keys ([batch, 1, 1, tokens of this rank]), or with one whose
/// last size is that of the whole sequence. Other masks are errors.
///
/// Make targets before, since a token's next one may belong to another rank. Models of hortator::models know the
/// positions of their tokens; pass others position_ids, as a buffer or from positions(). Gradients are means over data
/// and context: give backward() sums and counts where ranks count different numbers of tokens.
class HORTATOR_API ContextParallel {
 public:
  /// @collective
  [[nodiscard]] ContextParallel(const Accelerator& accelerator, std::vector<SequenceBuffer> buffers);
  ~ContextParallel();
  ContextParallel(const ContextParallel&) = delete;
  ContextParallel& operator=(const ContextParallel&) = delete;

  /// The positions of this rank's tokens in the whole sequence, int64 on the buffers' device.
  const at::Tensor& positions() const { return positions_; }

 private:
  struct Division;
  std::unique_ptr<Division> division_;  ///< null where one rank has whole sequences
  at::Tensor positions_;
};

}  // namespace hortator
