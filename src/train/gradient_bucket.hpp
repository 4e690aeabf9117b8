#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"

namespace hortator::train {

/// Gradients of several parameters in one piece of the communicator's memory, so that they travel in one collective.
/// One element more than the gradients need: a mark, which every rank can raise and all see after the reduction.
class GradientBucket {
 public:
  /// All parameters are of one type and on one device.
  GradientBucket(comm::Communicator& communicator, std::vector<at::Tensor> parameters);

  /// The gradient of the i-th parameter is there: brings it into the bucket, unless it lives there already.
  void fill(std::size_t i);
  /// The i-th parameter has no gradient in this pass: it counts as zero.
  void fill_with_zero(std::size_t i);
  bool is_full() const { return filled_ == slots_.size(); }
  bool has(std::size_t i) const { return slots_[i].filled; }

  void raise_mark() { mark_.fill_(1); }
  bool mark_was_raised() const { return mark_.item<double>() > 0; }

  /// Averages over all ranks. @collective
  void start(comm::Communicator& communicator);
  bool was_started() const { return started_; }
  /// Waits; then the parameters' gradients are their places in the bucket.
  void finish();
  /// Ready for the next pass.
  void reset();

 private:
  struct Slot {
    at::Tensor parameter;
    at::Tensor place;  ///< alias of the bucket's memory with the parameter's sizes and strides
    bool filled = false;
  };
  void mark_filled(Slot& slot);

  at::Tensor memory_;
  at::Tensor mark_;
  std::vector<Slot> slots_;
  std::size_t filled_ = 0;
  bool started_ = false;
  comm::Work work_;
};

}  // namespace hortator::train
