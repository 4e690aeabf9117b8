#include "step/reproducible/shard_buffers.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>

namespace hortator::step {

void ShardBuffers::begin_shard(int number) {
  if (number == 0) {
    keep_first();
    at_begin_ = copies();
    note_versions();
    return;
  }
  if (number == 1) after_first_ = copies();
  set(at_begin_);
  note_versions();
}

// Backward of other shards is still to come. Kernels that change buffers without a new version (BatchNorm's) do not
// read them in backward: where all changes were theirs, this one is not noted either.
void ShardBuffers::begin_stage() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i]._version() != versions_[i]) {
      buffers_[i].copy_(at_begin_[i]);
      continue;
    }
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    buffers_[i].copy_(at_begin_[i]);
  }
  note_versions();
}

void ShardBuffers::note_versions() {
  versions_.clear();
  for (const auto& buffer : buffers_) versions_.push_back(buffer._version());
}

void ShardBuffers::end_stage(int number) {
  if (number != 0) return;
  if (after_first_.empty()) after_first_ = at_begin_;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (!at::equal(buffers_[i], at_begin_[i])) after_first_[i] = buffers_[i].clone();  // it is of this stage
  }
}

void ShardBuffers::publish(comm::Communicator& communicator) {
  keep_first();
  communicator.broadcast_all(buffers_, 0).wait();
}

void ShardBuffers::keep_first() {
  set(after_first_);
  after_first_.clear();
}

std::vector<at::Tensor> ShardBuffers::copies() const {
  std::vector<at::Tensor> values;
  for (const auto& buffer : buffers_) values.push_back(buffer.clone());
  return values;
}

void ShardBuffers::set(const std::vector<at::Tensor>& values) const {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < values.size(); ++i) buffers_[i].copy_(values[i]);
}

}  // namespace hortator::step
