#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstdint>
#include <hortator/training/recompute.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "step/precision/autocast_state.hpp"
#include "step/random_state.hpp"

namespace hortator::step {

/// A call whose saved tensors are recomputed when backward needs them. Lives until no saved tensor can be needed.
///
/// In the first run each saved tensor becomes a numbered slot without a value. When backward asks for the first slot,
/// the call runs again with the first run's random numbers and autocast settings, and the tensors that it saves fill
/// the slots in the same order. A value is released when backward has taken it. Arguments are saved as autograd saves
/// tensors, so that within another recomputed call they are slots of that call.
class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  explicit Recomputation(hortator::detail::RecomputedCall call);

  /// Returns hooks for a tensor that the first run saves.
  std::unique_ptr<torch::autograd::SavedVariableHooks> pack_hooks();
  /// Ends the first run. Throws if it has changed an argument in place.
  void finish();

 private:
  /// Traits of a saved tensor that must be equal in both runs.
  struct TensorTraits {
    std::vector<std::int64_t> sizes;
    at::ScalarType type;
    c10::Device device;
    std::optional<std::int64_t> version;  ///< of a parameter or a view of it, which is the same object in both runs
    bool has_shape_of(const TensorTraits& other) const;
    bool has_version_of(const TensorTraits& other) const;
  };
  struct SavedSlot {
    TensorTraits traits;
    bool needed = true;  ///< backward may still need it
    at::Tensor value = {};
    std::int64_t version = 0;  ///< of the value when it was saved
  };
  class SlotHooks;
  class RefillHooks;

  static TensorTraits traits_of(const at::Tensor& tensor);
  static std::string describe(const TensorTraits& traits);

  std::size_t add(const at::Tensor& tensor);
  void forget(std::size_t slot);
  at::Tensor take(std::size_t slot);
  void run_again();
  void run_with_first_state(const std::vector<at::Tensor>& arguments);
  void fill_next(const at::Tensor& kept, const at::Tensor& tensor);
  void drop_values();

  hortator::detail::RecomputedCall call_;  ///< its arguments are in arguments_
  std::vector<torch::autograd::SavedVariable> arguments_;
  std::vector<std::pair<at::Tensor, std::int64_t>> watched_;  ///< arguments and their versions, in the first run
  RandomState random_;
  AutocastState autocast_ = AutocastState::current();
  // Device threads may ask for slots concurrently. Recursive, since the second run may release a slot.
  std::recursive_mutex mutex_;
  std::vector<SavedSlot> slots_;
  std::size_t next_ = 0;
};

}  // namespace hortator::step
