#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/nccl/handle.hpp"
#include "comm/work.hpp"
#include "core/activity/activity.hpp"
#include "machine/races/stream_watch.hpp"

namespace hortator::comm {

/// A tensor of a collective and its data as NCCL needs it.
struct NcclOperand {
  at::Tensor tensor;
  at::Tensor data;
};

/// One operation on the communication stream, which starts after all work that the current stream has been given.
/// Operators run on the current stream, before it and when it is waited for: on the communication stream the pager
/// would take it for the stream that computes.
class NcclOperation {
 public:
  explicit NcclOperation(std::shared_ptr<NcclHandle> handle)
      : handle_(std::move(handle)), operation_(activity::current()) {
    stream().follow_current();
    if (operation_) begin_.emplace(stream().mark());
  }

  /// `tensor` as NCCL needs it: contiguous, conjugation and negation resolved, of this type. Call it before the
  /// operation begins. Either the tensor's own memory or a copy.
  static at::Tensor packed(const at::Tensor& tensor, at::ScalarType type) {
    return tensor.detach().resolve_conj().resolve_neg().contiguous().to(type);
  }

  /// The operation under way. Keeps the operands alive until it is waited for, which writes `results` to their tensors.
  /// Reports its progress to the watchdog.
  Work work(std::vector<NcclOperand> results, std::vector<NcclOperand> inputs = {}) {
    for (const auto& operand : results) machine::note_use(operand.data, stream().get(), "NCCL", /*writes=*/true);
    for (const auto& operand : inputs) machine::note_use(operand.data, stream().get(), "NCCL", /*writes=*/false);
    const auto end = stream().mark();
    if (begin_) handle_->order()->pending().add(operation_, *begin_, end);
    for (const auto* operands : {&results, &inputs}) protect_copies(*operands);
    auto kept = std::make_shared<KeptOperands>(end, std::move(results), std::move(inputs));
    return Work([handle = handle_, kept = std::move(kept)] {
      handle->check();
      kept->release();
    });
  }

 private:
  /// The operands of an operation under way. Their memory may be used again only behind the operation, also without
  /// a wait for it (during stack unwinding): then the current stream waits for it here.
  class KeptOperands {
   public:
    KeptOperands(machine::Event end, std::vector<NcclOperand> results, std::vector<NcclOperand> inputs)
        : end_(std::move(end)), results_(std::move(results)), inputs_(std::move(inputs)) {}
    ~KeptOperands() {
      if (is_released_) return;
      try {
        end_.hold_current_stream();
      } catch (const std::exception&) {  // the device has failed
      }
    }
    KeptOperands(const KeptOperands&) = delete;
    KeptOperands& operator=(const KeptOperands&) = delete;

    void release() {
      end_.hold_current_stream();
      is_released_ = true;
      for (const auto& [tensor, data] : std::exchange(results_, {})) {
        if (data.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(data.view(tensor.sizes()));
      }
      inputs_.clear();
    }

   private:
    machine::Event end_;
    std::vector<NcclOperand> results_;
    std::vector<NcclOperand> inputs_;
    bool is_released_ = false;
  };

  // A copy's memory belongs to the stream that made it, which may be another than the one that waits.
  void protect_copies(const std::vector<NcclOperand>& operands) const {
    for (const auto& [tensor, data] : operands) {
      if (data.data_ptr() == tensor.data_ptr()) continue;
      c10::impl::VirtualGuardImpl(data.device().type())
          .recordDataPtrOnStream(data.storage().data_ptr(), stream().get());
    }
  }

  const machine::Stream& stream() const { return handle_->order()->stream(); }

  std::shared_ptr<NcclHandle> handle_;
  activity::Operation operation_;        ///< empty: not watched
  std::optional<machine::Event> begin_;  ///< the stream's mark before the operation
};

}  // namespace hortator::comm
