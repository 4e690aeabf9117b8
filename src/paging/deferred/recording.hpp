#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <mutex>
#include <vector>

#include "paging/interception/storage_provider.hpp"

namespace hortator::paging {

/// What was to be done to tensors that were made without memory, in the order of the program. It is done when somebody
/// needs their values, with the random numbers that it would have got then: in order where random numbers are drawn, by
/// itself where not.
class Recording final : public StorageProvider, public std::enable_shared_from_this<Recording> {
 public:
  /// Of random numbers. `any`: those who are filled draw their own then; others need not be drawn before.
  enum class Order { as_written, any };

  explicit Recording(Order order) : order_(order) {}

  /// A new tensor, whose memory goes until it is needed. Its storage is claimed. Small ones keep their memory, and what
  /// is not random is done to them at once: programs write to such tensors by pointers.
  void add(const at::Tensor& tensor);
  /// If the operator does nothing but set the values of one of our tensors: notes it, and gives that tensor. Otherwise
  /// an undefined one.
  at::Tensor record(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  /// All that was noted is done now: an operator is about to draw random numbers.
  void catch_up();
  /// The construction is over: tensors of which all is done are let go.
  void end();

  void enter(int storage, Access access) override;
  void leave(int /*storage*/) noexcept override {}
  /// Of a storage that is dropped only the random numbers are still drawn, if others need theirs.
  void hand_over(int storage, Content content) override;

 private:
  struct Step {
    c10::OperatorHandle op;
    torch::jit::Stack arguments;
    int storage = 0;
    bool is_random = false;
    bool is_done = false;
  };
  struct Deferred {
    at::Storage storage = {};  ///< empty: it has its values, or is dropped
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    std::vector<std::size_t> steps = {};
    bool needs_order = false;  ///< random numbers are among its values
    bool is_plain = false;     ///< it has its memory, and all is done that was to be
  };

  Deferred& deferred(int storage) { return deferred_[static_cast<std::size_t>(storage)]; }
  void fill(int storage);
  void run_until(std::size_t end);
  void run(Step& step);
  void set_free(int storage);

  Order order_;
  std::mutex mutex_;
  std::vector<Deferred> deferred_;
  std::vector<Step> steps_;
  std::size_t done_ = 0;      ///< random steps before are done
  at::Tensor begin_state_;    ///< of the generator, when the first random step was noted
  at::Tensor present_state_;  ///< after the random steps that are done
};

/// Was it made under deferred construction, and has no values yet, or not all of them?
bool awaits_construction(const at::Tensor& tensor);

}  // namespace hortator::paging
