#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/nccl/handle.hpp"
#include "comm/work.hpp"
#include "core/activity/activity.hpp"

namespace hortator::comm {

/// One operation on the communication stream. While it exists, that stream is this thread's current one, and it starts
/// after all work that the previous current stream has been given.
class NcclOperation {
 public:
  explicit NcclOperation(std::shared_ptr<NcclHandle> handle)
      : handle_(std::move(handle)),
        guard_((handle_->order()->stream().follow_current(), stream().get())),
        operation_(activity::current()) {
    if (operation_) begin_.emplace(stream().mark());
  }

  /// `tensor` as NCCL needs it: contiguous, conjugation and negation resolved, of this type. Either the tensor itself
  /// or a copy allocated on the communication stream, which reuses its memory in stream order.
  static at::Tensor packed(const at::Tensor& tensor, at::ScalarType type) {
    return tensor.detach().resolve_conj().resolve_neg().contiguous().to(type);
  }
  static void unpack(const at::Tensor& packed, const at::Tensor& tensor) {
    if (packed.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(packed.view(tensor.sizes()));
  }

  /// The operation under way. Keeps `tensors` alive until it is waited for, and reports its progress to the watchdog.
  Work work(std::vector<at::Tensor> tensors) {
    const auto end = std::make_shared<const machine::Event>(stream().mark());
    if (begin_) handle_->order()->pending().add(operation_, *std::exchange(begin_, std::nullopt), end);
    return Work([handle = handle_, end, kept = std::move(tensors)] {
      handle->check();
      end->hold_current_stream();
    });
  }

 private:
  const machine::Stream& stream() const { return handle_->order()->stream(); }

  std::shared_ptr<NcclHandle> handle_;
  c10::StreamGuard guard_;
  activity::Operation operation_;        ///< empty: not watched
  std::optional<machine::Event> begin_;  ///< the stream's mark before the operation
};

}  // namespace hortator::comm
