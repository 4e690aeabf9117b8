#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/communicator.hpp"

namespace hortator::step {

/// Buffers that forward changes (BatchNorm's statistics). Each shard of a step starts with the same values, and the
/// values after the first shard of rank 0 are kept.
class ShardBuffers {
 public:
  explicit ShardBuffers(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {}

  /// Forgets the values of the running step.
  void restart() { after_first_.clear(); }
  /// Call before this rank's shard `number` of a step.
  void begin_shard(int number);
  /// Call before and after forward of shard `number` in one of several stages, in any order of shards and stages.
  void begin_stage();
  void end_stage(int number);
  /// Gives all ranks the values after rank 0's first shard. @collective
  void publish(comm::Communicator& communicator);

 private:
  void keep_first();
  std::vector<at::Tensor> copies() const;
  void note_versions();
  void set(const std::vector<at::Tensor>& values) const;

  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> at_begin_;
  std::vector<std::int64_t> versions_;  ///< when they were last set to at_begin_
  std::vector<at::Tensor> after_first_;
};

}  // namespace hortator::step
