#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"

namespace hortator::parallel {

struct BucketFormat {
  at::ScalarType travel_type = at::kFloat;  ///< in which the gradients are sent
  bool error_feedback = false;              ///< where that is not their own: rounding errors go into the next pass
  std::int64_t signals = 1;                 ///< length of the message behind the gradients; only on CPUs
};

/// Gradients of several parameters in one piece of the communicator's memory, so that they travel in one collective.
/// Where they travel in their own type, their places in the bucket become the gradients' own memory and nothing is
/// copied as long as they stay there; otherwise they are converted on the way in and out.
///
/// A pass: fill or fill_unused for every slot, pack, start, wait, publish or keep for every slot, reset.
class GradientBucket {
 public:
  /// All parameters are of one type and on one device. @collective
  GradientBucket(comm::Communicator& communicator, std::vector<at::Tensor> parameters, const BucketFormat& format);

  /// The gradient of the i-th parameter is there. More may be added to it until the bucket is packed.
  void fill(std::size_t i);
  /// The i-th parameter got no gradient: it counts with what it has from before, and with zero if it has none.
  void fill_unused(std::size_t i);
  /// This rank has no gradients at all: it counts as zero, and needs no pack.
  void fill_with_zeros();
  bool is_full() const { return filled_ == slots_.size(); }
  bool has(std::size_t i) const { return slots_[i].state != State::empty; }

  /// Sets the message behind the gradients (BucketFormat::signals floats). Must be called before start().
  void set_signals(const std::vector<float>& message);
  /// After wait(): the sum or mean of the ranks' messages.
  std::vector<float> signals() const;

  /// Brings everything into the form in which it travels.
  void pack();
  /// Begins to average over all ranks. @collective
  void start(comm::Communicator& communicator);
  bool was_started() const { return started_; }
  void wait() { work_.wait(); }

  /// The i-th parameter's gradient becomes the average.
  void publish(std::size_t i);
  /// The i-th parameter, filled as unused, keeps the gradient that it had.
  void keep(std::size_t i);
  /// Ready for the next pass.
  void reset();

 private:
  enum class State { empty, filled, unused };
  struct Slot {
    at::Tensor parameter;
    at::Tensor place;          ///< in the bucket's memory, with the parameter's sizes and strides
    at::Tensor residual = {};  ///< what rounding has taken from the gradients sent so far
    at::Tensor kept = {};      ///< an unused gradient that lives in the bucket, while the bucket travels
    State state = State::empty;
  };
  void set_state(Slot& slot, State state);
  void encode(Slot& slot);
  void encode_with_residual(Slot& slot);

  bool in_place_;       ///< the gradients' own type travels
  bool divides_first_;  ///< fp16: the sum of all ranks' gradients could overflow
  at::Tensor ranks_;    ///< their number, as a divisor
  at::Tensor memory_;
  at::Tensor signals_;
  std::vector<Slot> slots_;
  std::size_t filled_ = 0;
  bool started_ = false;
  comm::Work work_;
};

}  // namespace hortator::parallel
