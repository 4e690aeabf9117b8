#pragma once

#include <functional>
#include <memory>

#include "data/loader/step_reader.hpp"

namespace hortator::data {

/// Reads several consecutive batches of each rank as one, whose tensors are joined along dimension 0.
class JoinedReader final : public StepReader {
 public:
  /// `before_part` may be empty; it is called before each of the `count` batches is read. `source` must outlive this.
  JoinedReader(std::shared_ptr<StepReader> parts, int count, const BatchSource& source,
               std::function<void(int part)> before_part)
      : parts_(std::move(parts)), count_(count), source_(source), before_part_(std::move(before_part)) {}

  /// Throws UsageError for tensors that cannot be joined.
  std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) override;

 private:
  void join(const std::vector<std::shared_ptr<void>>& batches) const;

  std::shared_ptr<StepReader> parts_;
  int count_;
  const BatchSource& source_;
  std::function<void(int part)> before_part_;
};

}  // namespace hortator::data
