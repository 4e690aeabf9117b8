#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "comm/communicator.hpp"

namespace hortator::step {

/// Buffers that forward changes (BatchNorm's statistics): each shard of a step starts from the same ones, and what the
/// first shard of all made of them stays.
class ShardBuffers {
 public:
  explicit ShardBuffers(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {}

  /// Before this rank's shard `number` of a step.
  void begin_shard(int number);
  /// @collective
  void publish(comm::Communicator& communicator);

 private:
  void keep_first();
  std::vector<at::Tensor> copies() const;
  void set(const std::vector<at::Tensor>& values) const;

  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> at_begin_;
  std::vector<at::Tensor> after_first_;
};

}  // namespace hortator::step
