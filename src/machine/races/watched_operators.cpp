#include "machine/races/watched_operators.hpp"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "machine/device/recording.hpp"
#include "machine/races/operator_memory.hpp"
#include "machine/races/program_frame.hpp"
#include "machine/races/storage_memory.hpp"
#include "machine/races/watch_state.hpp"

namespace hortator::machine {
namespace {

using c10::IValue;

template <typename Act>
void for_tensors(const IValue& value, Act act) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) act(value.toTensor());
  } else if (value.isList()) {
    for (const auto& element : value.toListRef()) for_tensors(element, act);
  }
}

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

bool holds_mask(const IValue& indices) {
  bool found = false;
  for_tensors(indices, [&](const at::Tensor& tensor) {
    found = found || tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
  });
  return found;
}

bool has_memory(const at::Tensor& tensor) { return range_of(tensor).has_value(); }

/// One call of an operator, until it returns.
class WatchedCall final : public at::ObserverContext {
 public:
  WatchedCall(const OperatorMemory& memory, const at::RecordFunction& call) : memory_(memory) {
    find_streams(call.inputs());
    has_mask_ = memory_.waits_for_masks && holds_mask(call.inputs()[1]);
    if (streams_.empty() ? !memory_.touches_host : !memory_.touches_device) return;
    user_ = {.name = memory_.name, .site = program_frame()};
    for (const auto& stream : streams_) watch_state().submit(stream);
    order_devices();
    if (memory_.is_copy && !streams_.empty())
      note_copy(call.inputs());
    else
      for_arguments(call.inputs(), [&](const at::Tensor& tensor, bool writes) { note_use(tensor, writes); });
  }

  void end(const std::vector<IValue>& results) {
    for (const auto& [tensor, writes] : absent_)
      watch_state().use(tensor, current_stream(tensor.device()), user_, writes);
    for (std::size_t i = 0; i < results.size() && i < memory_.is_new.size(); ++i)
      if (memory_.is_new[i] != 0) for_tensors(results[i], [&](const at::Tensor& tensor) { note_result(tensor); });
    order_devices();
    if (!is_waited_for()) return;
    for (const auto& stream : streams_) watch_state().host_waited(watch_state().clock_of(stream));
  }

 private:
  template <typename Act>
  void for_arguments(c10::ArrayRef<const IValue> inputs, Act act) const {
    for (std::size_t i = 0; i < inputs.size() && i < memory_.writes.size(); ++i)
      for_tensors(inputs[i], [&](const at::Tensor& tensor) { act(tensor, memory_.is_written(i, inputs)); });
  }

  // Notes the current stream of each device that the operator works on. A copy between two devices is its source's
  // work.
  void find_streams(c10::ArrayRef<const IValue> inputs) {
    for_arguments(inputs, [&](const at::Tensor& tensor, bool) {
      if (!watch_state().is_watched(tensor)) return;
      const auto stream = current_stream(tensor.device());
      if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
    });
  }

  // LibTorch's copies between devices come after the current work of both, and before their later work.
  void order_devices() const {
    for (const auto& first : streams_)
      for (const auto& second : streams_)
        if (first != second) watch_state().order(first, second);
  }

  // Numbers on the CPU are passed by value. Paged parameters come to the device only now.
  void note_use(const at::Tensor& tensor, bool writes) {
    if (!watch_state().is_watched(tensor)) {
      if (tensor.is_cpu()) watch_state().use_by_host(tensor, user_, writes);
    } else if (has_memory(tensor)) {
      watch_state().use(tensor, current_stream(tensor.device()), user_, writes);
    } else {
      absent_.emplace_back(tensor, writes);
    }
  }

  void note_copy(c10::ArrayRef<const IValue> inputs) {
    is_blocking_ = inputs.size() < 3 || !inputs[2].toBool();
    for_arguments(inputs.slice(0, 2), [&](const at::Tensor& tensor, bool writes) {
      if (watch_state().is_watched(tensor)) return note_use(tensor, writes);
      has_host_side_ = true;
      const bool is_locked = tensor.is_cpu() && has_memory(tensor) &&
                             at::globalContext().isPinnedPtr(tensor.storage().data(), streams_.front().device_type());
      if (is_locked) return watch_state().use(tensor, streams_.front(), user_, writes);
      if (writes) is_blocking_ = true;  // memory of the host that is not page-locked
    });
  }

  void note_result(const at::Tensor& tensor) const {
    if (!watch_state().is_watched(tensor)) return;
    const auto stream = current_stream(tensor.device());
    watch_state().allocated(tensor, stream);
    if (!memory_.touches_device) return;
    if (streams_.empty()) watch_state().submit(stream);
    watch_state().use(tensor, stream, user_, true);
  }

  bool is_waited_for() const {
    if (memory_.is_copy) return is_blocking_ && has_host_side_;
    return memory_.waits || has_mask_;
  }

  const OperatorMemory& memory_;
  MemoryUser user_;
  std::vector<c10::Stream> streams_;
  std::vector<std::pair<at::Tensor, bool>> absent_;
  bool is_blocking_ = false;
  bool has_host_side_ = false;
  bool has_mask_ = false;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  if (!watch_state().is_on() || is_recording()) return nullptr;
  const at::DisableRecordFunctionGuard unseen;
  const auto* const memory = memory_of(call, watch_state().type());
  if (memory == nullptr) return nullptr;
  if (memory->keeps_for_stream) {
    const auto& tensor = call.inputs()[0].toTensor();
    if (!watch_state().is_watched(tensor)) return nullptr;
    watch_state().allocated(tensor, current_stream(tensor.device()));  // it may be unknown so far
    watch_state().keep(tensor.storage().data_ptr(), call.inputs()[1].toStream());
    return nullptr;
  }
  if (!memory->touches_device && !memory->touches_host && !memory->only_allocates) return nullptr;
  return std::make_unique<WatchedCall>(*memory, call);
}

void end(const at::RecordFunction& call, at::ObserverContext* context) {
  const at::DisableRecordFunctionGuard unseen;
  if (auto* const watched = dynamic_cast<WatchedCall*>(context); watched != nullptr && watch_state().is_on())
    watched->end(call.outputs());
}

}  // namespace

at::RecordFunctionCallback watched_operators() {
  return at::RecordFunctionCallback(begin, end)
      .needsInputs(true)
      .needsOutputs(true)
      .scopes({at::RecordScope::FUNCTION});
}

}  // namespace hortator::machine
