#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <hortator/export.hpp>
#include <memory>
#include <span>

namespace hortator::data {

/// Where batches go, and how.
struct Placement {
  c10::Device device = c10::Device(c10::kCPU);
  bool non_blocking = false;
};

/// What a loader needs of a data set and of the way its samples become batches, whatever their types.
class HORTATOR_API BatchSource {
 public:
  virtual ~BatchSource();
  virtual std::int64_t size() const = 0;
  /// May several threads read at once? If not: one at a time, not always the same.
  virtual bool is_shareable() const = 0;
  virtual std::shared_ptr<void> read(std::span<const std::int64_t> samples) = 0;
  virtual void pin(void* batch) const = 0;  ///< into page-locked memory
  virtual void place(void* batch, const Placement& placement) const = 0;
};

/// Inside a catch block: throws an Error that names the samples at hand, with the caught exception nested in it.
[[noreturn]] HORTATOR_API void throw_unreadable(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_not_joined(std::span<const std::int64_t> samples);
[[noreturn]] HORTATOR_API void throw_unknown_size();

HORTATOR_API at::Tensor stack(std::span<const at::Tensor> tensors);
HORTATOR_API at::Tensor pinned(const at::Tensor& tensor);
HORTATOR_API at::Tensor placed(const at::Tensor& tensor, const Placement& placement);

}  // namespace hortator::data
