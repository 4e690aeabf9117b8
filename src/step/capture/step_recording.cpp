#include "step/capture/step_recording.hpp"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace hortator::step {
namespace {

/// While it lives, LibTorch does not fill new memory with NaN, as it does with deterministic algorithms.
class NoFillScope {
 public:
  NoFillScope() { at::globalContext().setDeterministicFillUninitializedMemory(false); }
  ~NoFillScope() { at::globalContext().setDeterministicFillUninitializedMemory(before_); }
  NoFillScope(const NoFillScope&) = delete;
  NoFillScope& operator=(const NoFillScope&) = delete;

 private:
  bool before_ = at::globalContext().deterministicFillUninitializedMemory();
};

at::Tensor unfilled_number(c10::Device device) {
  const NoFillScope no_fill;
  return at::empty({}, at::TensorOptions(device).dtype(at::kFloat));
}

}  // namespace

// Do not fill the number by an operator here: it would be recorded, and each replay would restore the old number.
at::Tensor StepRecording::number(c10::Device device, std::function<double()> value) {
  auto number = unfilled_number(device);
  before_replay([number, value = std::move(value)] {
    const at::NoGradGuard no_grad;
    number.fill_(value());
  });
  return number;
}

bool StepRecording::is_good() const {
  return std::all_of(conditions_.begin(), conditions_.end(), [](const auto& holds) { return holds(); });
}

void StepRecording::begin_replay() const {
  for (const auto& act : before_) act();
}

void StepRecording::end_replay() const {
  for (const auto& act : after_) act();
}

}  // namespace hortator::step
