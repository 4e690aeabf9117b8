#pragma once

#include <ATen/core/Tensor.h>

#include <hortator/parallel/data_parallel.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "parallel/data_parallel/replica_check.hpp"

namespace hortator::parallel {

struct BucketFormat {
  at::ScalarType travel_type = at::kFloat;  ///< in which the gradients are sent
  bool error_feedback = false;              ///< if that is not their own: rounding errors are added to the next pass
  std::int64_t signals = 1;                 ///< length of the message behind the gradients; only on CPUs
  const BucketHook* hook = nullptr;         ///< averages the gradients in the place of an all-reduce
  std::int64_t index = 0;                   ///< of the bucket, for the hook
};

/// Gradients of several parameters in contiguous memory of the communicator, so that they travel in one collective. If
/// they travel in their own type, the bucket's memory becomes the gradients' memory, and nothing is copied as long as
/// they stay there; otherwise they are converted on the way in and out. Each begins where kernels can load whole
/// vectors; the gaps are zeros.
///
/// A pass is: fill or fill_unused for every slot, pack, start, wait, publish or keep for every slot, reset.
class GradientBucket {
 public:
  /// All parameters must be of one type and on one device. @collective
  GradientBucket(comm::Communicator& communicator, std::vector<NamedParameter> parameters, const BucketFormat& format);

  /// Must be called when the i-th parameter has its gradient. More may be added to it until the bucket is packed.
  void fill(std::size_t i);
  /// Must be called if the i-th parameter got no gradient: it counts with the gradient that it has from before, and
  /// with zero if it has none.
  void fill_unused(std::size_t i);
  /// Must be called instead, without pack, if this rank has no gradients: it counts as zero.
  void fill_with_zeros();
  bool is_full() const { return filled_ == slots_.size(); }
  bool has(std::size_t i) const { return slots_[i].state != SlotState::empty; }

  /// Sets the message behind the gradients (BucketFormat::signals floats). Must be called before start().
  void set_signals(const std::vector<float>& message);
  /// After wait(): the sum or mean of the ranks' messages.
  std::vector<float> signals() const;

  /// Converts everything to the form in which it travels.
  void pack();
  /// Starts to average over all ranks. @collective
  void start(comm::Communicator& communicator);
  bool was_started() const { return started_; }
  void wait() { work_.wait(); }

  /// Sets the i-th parameter's gradient to the average, at the latest in reset().
  void publish(std::size_t i);
  /// Keeps the gradient that the i-th parameter, filled as unused, had before.
  void keep(std::size_t i);
  /// Prepares for the next pass.
  void reset();
  /// Takes the gradients that have the bucket's memory from their parameters.
  void release();

 private:
  enum class SlotState { empty, filled, unused };
  struct BucketSlot {
    std::string name;  ///< of the parameter
    at::Tensor parameter;
    at::Tensor in_bucket;      ///< in the bucket's memory, with the parameter's sizes and strides
    at::Tensor residual = {};  ///< the rounding error of the gradients sent so far
    at::Tensor kept = {};      ///< copy of an unused gradient whose memory is the bucket's, while the bucket travels
    SlotState state = SlotState::empty;
  };
  void set_state(BucketSlot& slot, SlotState state);
  void run_hook(comm::Communicator& communicator);
  void encode();
  void encode_with_residual(BucketSlot& slot);
  void decode();

  bool in_place_;       ///< gradients travel in their own type
  bool divides_first_;  ///< fp16: the sum of all ranks' gradients could overflow
  at::Tensor ranks_;    ///< their number, as a divisor
  at::Tensor memory_;
  at::Tensor signals_;
  const BucketHook* hook_;  ///< null: an all-reduce
  std::int64_t index_;
  std::vector<BucketSlot> slots_;
  std::vector<at::Tensor> averages_;   ///< published ones, still in the bucket
  std::vector<at::Tensor> gradients_;  ///< to which they are converted
  std::size_t filled_ = 0;
  bool started_ = false;
  comm::Work work_;
};

}  // namespace hortator::parallel
