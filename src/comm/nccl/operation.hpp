#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/nccl/handle.hpp"
#include "comm/work.hpp"
#include "core/activity/device_activity.hpp"

namespace hortator::comm {

/// One operation's way through the communication stream: from here to the end of the scope, what this thread gives the
/// device goes there, after all that the current stream was given before.
class NcclOperation {
 public:
  explicit NcclOperation(std::shared_ptr<NcclHandle> handle)
      : handle_(std::move(handle)),
        guard_((handle_->order()->stream().follow_current(), stream().get())),
        operation_(activity::current()) {
    if (operation_) begin_.emplace(stream().mark());
  }

  /// `tensor` as NCCL wants it, without gaps, in memory as it reads and in this type: itself, or a copy that belongs to
  /// the stream, which takes its memory back in its own order.
  static at::Tensor packed(const at::Tensor& tensor, at::ScalarType type) {
    return tensor.detach().resolve_conj().resolve_neg().contiguous().to(type);
  }
  static void unpack(const at::Tensor& packed, const at::Tensor& tensor) {
    if (packed.data_ptr() != tensor.data_ptr()) tensor.detach().copy_(packed.view(tensor.sizes()));
  }

  /// The operation under way: `tensors` are kept until it is waited for. The watchdog sees how far the device is.
  Work work(std::vector<at::Tensor> tensors) {
    const auto end = std::make_shared<const machine::Event>(stream().mark());
    if (begin_) handle_->order()->transfers().add(operation_, *std::exchange(begin_, std::nullopt), end);
    return Work([handle = handle_, end, kept = std::move(tensors)] {
      handle->check();
      end->hold_current_stream();
    });
  }

 private:
  const machine::Stream& stream() const { return handle_->order()->stream(); }

  std::shared_ptr<NcclHandle> handle_;
  c10::StreamGuard guard_;
  activity::Operation operation_;        ///< none: nobody watches
  std::optional<machine::Event> begin_;  ///< where the stream was then
};

}  // namespace hortator::comm
