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
#include "step/reproducible/random_state.hpp"

namespace hortator::step {

/// One call whose saved tensors are made again when backward needs them. Lives as long as one of them may be needed.
///
/// In the first run every saved tensor becomes a numbered slot without a value. The first slot that backward asks for
/// runs the call again under the first run's conditions and puts the tensors that are saved then into the slots, in the
/// same order; each value goes as soon as backward has taken it. The arguments are kept as autograd keeps tensors, so
/// within another such call they are slots of that one.
class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  explicit Recomputation(hortator::detail::RecomputedCall call);

  /// Hooks for a tensor that the first run saves.
  std::unique_ptr<torch::autograd::SavedVariableHooks> leave_out();
  /// The first run is over.
  void finish();

 private:
  /// What must be the same in both runs.
  struct Likeness {
    std::vector<std::int64_t> sizes;
    at::ScalarType type;
    c10::Device device;
    std::optional<std::int64_t> version;  ///< of a parameter, which is one object in both runs, or a view of it
    bool has_shape_of(const Likeness& other) const;
    bool has_version_of(const Likeness& other) const;
  };
  struct Slot {
    Likeness likeness;
    bool wanted = true;  ///< backward may still ask for it
    at::Tensor value = {};
    std::int64_t version = 0;  ///< of the value when it was saved
  };
  class LeftOut;
  class Refill;

  static Likeness likeness_of(const at::Tensor& tensor);
  static std::string describe(const Likeness& likeness);

  std::size_t add(const at::Tensor& tensor);
  void forget(std::size_t slot);
  at::Tensor take(std::size_t slot);
  void run_again();
  void run_under_first_conditions(const std::vector<at::Tensor>& arguments);
  void fill_next(const at::Tensor& kept, const at::Tensor& tensor);
  void drop_values();

  hortator::detail::RecomputedCall call_;  ///< its arguments are below
  std::vector<torch::autograd::SavedVariable> arguments_;
  std::vector<std::pair<at::Tensor, std::int64_t>> watched_;  ///< arguments and their versions, in the first run
  RandomState random_;
  AutocastState autocast_ = AutocastState::current();
  // Device threads may ask at the same time; a slot that is let go by the second run asks within it.
  std::recursive_mutex mutex_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
};

}  // namespace hortator::step
