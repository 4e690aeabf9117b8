#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulation/samples/tensor_batch.hpp"

namespace hortator::simulation {

/// Memory for a fixed number of samples, allocated by the first one.
class SampleStore {
 public:
  explicit SampleStore(std::int64_t capacity) : capacity_(capacity) {}

  /// The number of samples in a batch. Throws UsageError if its arrays differ in it, there are none, or they are not
  /// those of the samples so far in number, shape and type.
  std::int64_t check(const TensorBatch& batch) const;
  /// Allocates the memory for samples as those of a checked batch, unless it is there.
  void reserve(const TensorBatch& batch);
  /// Copies rows `from`, from + 1, ... of a checked batch to slots `slot`, slot + 1, ...; reserves their memory.
  void copy_rows(const TensorBatch& batch, std::int64_t from, std::int64_t slot, std::int64_t count);
  /// Copies of the samples in these slots.
  TensorBatch rows(const std::vector<std::int64_t>& slots) const;

  /// The first `count` samples, by names for a checkpoint: "inputs0", ...
  std::vector<std::pair<std::string, at::Tensor>> named(std::int64_t count) const;
  /// The number, types and shapes of the arrays of one sample, as numbers; empty until the first sample.
  std::vector<std::int64_t> layout() const;
  /// Empty arrays for `count` samples of a layout.
  static TensorBatch batch_of(const std::vector<std::int64_t>& layout, std::int64_t count);
  /// The arrays that are kept, in the order of the layout.
  static std::vector<at::Tensor> arrays_of(const TensorBatch& batch);
  bool is_allocated() const { return !tensors_.inputs.empty(); }
  /// Forgets all samples; moved ones keep their memory.
  void clear() {
    if (!is_moved_) tensors_ = {};
  }
  /// Copies the first `count` samples to `memory`, [capacity, ...] each, and holds samples there from now on.
  void move_to(const TensorBatch& memory, std::int64_t count);

 private:
  std::int64_t capacity_;
  TensorBatch tensors_ = {};  ///< [capacity, ...]
  bool is_moved_ = false;
};

}  // namespace hortator::simulation
