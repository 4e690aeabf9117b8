#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <memory>
#include <mutex>
#include <vector>

#include "interception/claims.hpp"
#include "paging/deferred/deferred_provider.hpp"

namespace hortator::paging {

/// The operators that initialise tensors which were made without memory, in the order of the program. They run when the
/// values are needed, with the random numbers that they would have drawn at construction. Random numbers are drawn in
/// order; a tensor whose turn is over before it is needed gets no memory then, and draws its own again.
class Recording final : public DeferredProvider, public std::enable_shared_from_this<Recording> {
 public:
  /// The order of random numbers. `any`: a tensor draws its random numbers when it is filled, whatever was recorded
  /// before.
  enum class Order { as_written, any };

  explicit Recording(Order order) : order_(order) {}

  /// Claims the storage of a new tensor, and frees its memory until it is needed. Small tensors keep their memory, and
  /// operators without random numbers run on them at once: programs write to such tensors by pointers.
  void add(const at::Tensor& tensor);
  /// If the operator only sets the values of one recorded tensor: records it, and returns that tensor. Otherwise
  /// returns an undefined one.
  at::Tensor record(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);
  /// Draws all random numbers that were recorded. Must be called before an operator draws others.
  void catch_up();
  /// Must be called when the construction is over: releases tensors that have all their values.
  void end();

  void enter(int storage, interception::Access access) override;
  /// For a storage that is dropped, random numbers are still drawn if other tensors need theirs.
  void hand_over(int storage, interception::Content content) override;

 private:
  struct Step {
    c10::OperatorHandle op;
    torch::jit::Stack arguments;
    int storage = 0;
    bool is_random = false;
    bool is_done = false;
    at::Tensor state = {};  ///< of the generator at this step, if its random numbers were passed over
  };
  struct Deferred {
    at::Storage storage = {};  ///< empty if it has its values, or is dropped
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    std::vector<std::size_t> steps = {};
    bool needs_order = false;  ///< its values contain random numbers
    bool is_plain = false;     ///< it has its memory and all its values so far
  };

  Deferred& deferred(int storage) { return deferred_[static_cast<std::size_t>(storage)]; }
  void fill(int storage);
  void draw(const std::vector<std::size_t>& steps);
  void pass(std::size_t end);
  void run(Step& step);
  void release_tensor(int storage);

  Order order_;
  std::mutex mutex_;
  std::vector<Deferred> deferred_;
  std::vector<Step> steps_;
  std::size_t done_ = 0;      ///< random numbers of the steps before this one were drawn
  at::Tensor begin_state_;    ///< of the generator, when the first random step was recorded
  at::Tensor present_state_;  ///< of the generator, after the steps before `done_`
};

/// Whether a tensor was made under deferred construction and does not have all its values yet.
bool awaits_construction(const at::Tensor& tensor);

}  // namespace hortator::paging
