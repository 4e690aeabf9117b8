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

/// While it lives, sequences are divided over the ranks along the mesh's axis context. See
/// Accelerator::maybe_context_parallel().
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
