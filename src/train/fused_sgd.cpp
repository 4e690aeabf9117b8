#include "train/fused_sgd.hpp"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "train/fused_fit.hpp"

namespace hortator::train {
namespace {

using namespace torch::optim;

// What one call of the kernel takes: one device, one type, and buffers that all hold something or all nothing yet.
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
    const bool has_room = batch.bytes < most_bytes_a_call;
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

// As torch::optim does it: with the parameter's first gradient. The kernel fills it.
at::Tensor fresh_buffer(SGD& optimizer, const at::Tensor& parameter) {
  auto state = std::make_unique<SGDParamState>();
  state->momentum_buffer(at::empty_like(parameter));
  auto buffer = state->momentum_buffer();
  optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  return buffer;
}

void add_with_momentum(std::vector<SgdBatch>& batches, SGD& optimizer, const at::Tensor& parameter) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  const bool first = found == optimizer.state().end();
  auto& batch = sgd_batch_for(batches, parameter, first);
  add(batch, parameter);
  if (first) {
    batch.buffers.push_back(fresh_buffer(optimizer, parameter));
  } else {
    auto& buffer = static_cast<SGDParamState&>(*found->second).momentum_buffer();
    lay_out_as(buffer, parameter);
    batch.buffers.push_back(buffer);
  }
}

std::vector<SgdBatch> batches_of(SGD& optimizer, const OptimizerParamGroup& group, bool momentum) {
  std::vector<SgdBatch> batches;
  for (const auto& parameter : group.params()) {
    if (!parameter.grad().defined()) continue;
    if (momentum) {
      add_with_momentum(batches, optimizer, parameter);
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

}  // namespace

bool fused_sgd(SGD& optimizer) {
  const at::NoGradGuard no_grad;
  const auto& groups = optimizer.param_groups();
  if (!std::all_of(groups.begin(), groups.end(), is_plain_sgd)) return false;
  for (const auto& group : groups) {
    const auto& options = static_cast<const SGDOptions&>(group.options());
    for (const auto& batch : batches_of(optimizer, group, options.momentum() != 0)) {
      at::_fused_sgd_(batch.parameters, batch.gradients, batch.buffers, options.weight_decay(), options.momentum(),
                      options.lr(), options.dampening(), options.nesterov(), /*maximize=*/false, batch.first);
    }
  }
  return true;
}

}  // namespace hortator::train
