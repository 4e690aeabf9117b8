#include "step/capture/recorded_gradients.hpp"

namespace hortator::step {
namespace {

bool has_memory_of(const at::Tensor& tensor, const void* memory) {
  return tensor.defined() && tensor.const_data_ptr() == memory;
}

}  // namespace

RecordedGradients::RecordedGradients(const std::vector<at::Tensor>& parameters) {
  for (const auto& parameter : parameters) gradients_.push_back({parameter, parameter.grad()});
}

// A gradient that is still in the same memory is written by the recording. If the program removes or replaces it, its
// memory is free for other tensors, and the new gradient counts for nothing.
void RecordedGradients::complete(StepRecording& recording) const {
  for (const auto& [parameter, before] : gradients_) {
    const auto after = parameter.grad();
    if (!after.defined()) continue;
    if (before.defined() && has_memory_of(after, before.const_data_ptr())) {
      recording.require(
          [parameter = parameter, memory = after.const_data_ptr()] { return has_memory_of(parameter.grad(), memory); });
    } else {
      recording.after_replay([parameter = parameter, after] {
        if (!parameter.grad().defined()) parameter.mutable_grad() = after;
      });
    }
  }
}

void RecordedGradients::put_back() const {
  for (const auto& [parameter, before] : gradients_) parameter.mutable_grad() = before;
}

}  // namespace hortator::step
