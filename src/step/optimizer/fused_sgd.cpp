#include "step/optimizer/fused_sgd.hpp"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

#include "step/capture/step_recording.hpp"
#include "step/optimizer/fused_fit.hpp"
#include "step/step_ahead.hpp"

namespace hortator::step {
namespace {

using namespace torch::optim;

// Parameters of one kernel call, which have the same device and type, and momentum buffers that are all new or all old.
struct SgdBatch {
  c10::Device device;
  at::ScalarType type;
  bool first;
  std::size_t bytes = 0;
  std::vector<at::Tensor> parameters = {};
  std::vector<at::Tensor> gradients = {};
  std::vector<at::Tensor> buffers = {};
};

SgdBatch& sgd_batch_for(std::vector<SgdBatch>& batches, const at::Tensor& parameter, bool first) {
  for (auto& batch : batches) {
    const bool has_room = has_room_beside(batch.bytes, parameter, /*memory=*/{});
    if (has_room && batch.first == first && batch.device == parameter.device() && batch.type == parameter.scalar_type())
      return batch;
  }
  return batches.emplace_back(SgdBatch{.device = parameter.device(), .type = parameter.scalar_type(), .first = first});
}

void add(SgdBatch& batch, const at::Tensor& parameter) {
  batch.bytes += parameter.nbytes();
  batch.parameters.push_back(parameter);
  batch.gradients.push_back(gradient_of(parameter));
}

// Creates the state at the parameter's first gradient, as torch::optim does. The kernel fills it.
at::Tensor fresh_buffer(SGD& optimizer, const at::Tensor& parameter) {
  auto state = std::make_unique<SGDParamState>();
  state->momentum_buffer(at::empty_like(parameter));
  auto buffer = state->momentum_buffer();
  optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  return buffer;
}

void add_with_momentum(std::vector<SgdBatch>& batches, SGD& optimizer, const at::Tensor& parameter,
                       const StepMode& mode) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  const bool first = found == optimizer.state().end();
  if (first && mode.recording != nullptr) throw_first_gradient();
  auto& batch = sgd_batch_for(batches, parameter, first);
  add(batch, parameter);
  if (first) {
    batch.buffers.push_back(fresh_buffer(optimizer, parameter));
    // A skipped kernel does not fill the buffer, so the next step is the first one again.
    if (mode.ahead != nullptr)
      mode.ahead->when_skipped([&optimizer, parameter] { optimizer.state().erase(parameter.unsafeGetTensorImpl()); });
  } else {
    auto& buffer = static_cast<SGDParamState&>(*found->second).momentum_buffer();
    lay_out_as(buffer, parameter);
    batch.buffers.push_back(buffer);
  }
}

std::vector<SgdBatch> batches_of(SGD& optimizer, const OptimizerParamGroup& group, const StepMode& mode) {
  std::vector<SgdBatch> batches;
  const bool momentum = static_cast<const SGDOptions&>(group.options()).momentum() != 0;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    if (momentum) {
      add_with_momentum(batches, optimizer, parameter, mode);
    } else {
      add(sgd_batch_for(batches, parameter, false), parameter);
    }
  }
  return batches;
}

bool is_plain_sgd(const OptimizerParamGroup& group) {
  const auto& options = group.options();
  return typeid(options) == typeid(SGDOptions) && fits_fused_kernel(group);
}

template <typename Rate>
void run_sgd(const SgdBatch& batch, const SGDOptions& options, const StepMode& mode, const Rate& rate) {
  at::_fused_sgd_(batch.parameters, batch.gradients, batch.buffers, options.weight_decay(), options.momentum(), rate,
                  options.dampening(), options.nesterov(), /*maximize=*/false, batch.first, /*grad_scale=*/std::nullopt,
                  not_finite_for(mode, batch.device));
}

/// One batch of a recorded step, with the numbers that it reads on the device and the conditions of its validity.
class RecordedSgdBatch {
 public:
  RecordedSgdBatch(SGD& optimizer, std::size_t group, SgdBatch batch)
      : optimizer_(optimizer), group_(group), batch_(std::move(batch)), options_(options()) {
    for (const auto& parameter : batch_.parameters) addresses_.push_back(parameter.const_data_ptr());
  }

  const SgdBatch& batch() const { return batch_; }
  const SGDOptions& options() const {
    return static_cast<const SGDOptions&>(optimizer_.param_groups()[group_].options());
  }
  bool is_good() const {
    auto now = options();
    now.lr(options_.lr());
    if (!(now == options_)) return false;
    for (std::size_t i = 0; i < batch_.parameters.size(); ++i) {
      if (batch_.parameters[i].const_data_ptr() != addresses_[i]) return false;
      if (!batch_.buffers.empty() && !has_buffer(batch_.parameters[i], batch_.buffers[i])) return false;
    }
    return true;
  }

 private:
  bool has_buffer(const at::Tensor& parameter, const at::Tensor& buffer) const {
    const auto found = optimizer_.state().find(parameter.unsafeGetTensorImpl());
    return found != optimizer_.state().end() &&
           static_cast<SGDParamState&>(*found->second).momentum_buffer().is_same(buffer);
  }

  SGD& optimizer_;
  std::size_t group_;
  SgdBatch batch_;
  SGDOptions options_;
  std::vector<const void*> addresses_;
};

void record_sgd(SGD& optimizer, std::size_t group, SgdBatch batch, const StepMode& mode) {
  auto& recording = *mode.recording;
  const auto kept = std::make_shared<RecordedSgdBatch>(optimizer, group, std::move(batch));
  const auto rate = recording.number(kept->batch().device, [kept] { return kept->options().lr(); });
  recording.require([kept] { return kept->is_good(); });
  run_sgd(kept->batch(), kept->options(), mode, rate);
}

}  // namespace

bool fused_sgd(SGD& optimizer, const StepMode& mode) {
  const at::NoGradGuard no_grad;
  const auto& groups = optimizer.param_groups();
  if (!std::all_of(groups.begin(), groups.end(), is_plain_sgd)) return false;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto& options = static_cast<const SGDOptions&>(groups[group].options());
    for (auto& batch : batches_of(optimizer, groups[group], mode)) {
      if (mode.recording != nullptr) {
        record_sgd(optimizer, group, std::move(batch), mode);
      } else {
        run_sgd(batch, options, mode, options.lr());
      }
    }
  }
  return true;
}

}  // namespace hortator::step
